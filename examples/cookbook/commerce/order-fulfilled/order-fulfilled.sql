-- id: order-fulfilled
-- description: Paid and packed in any order, then shipped
SELECT order_id, placed_at, shipped_at, last_step
FROM orders MATCH_RECOGNIZE (
  PARTITION BY order_id
  ORDER BY ts
  MEASURES placed.ts         AS placed_at,
           shipped.ts        AS shipped_at,
           CLASSIFIER(ready) AS last_step
  PATTERN (placed PERMUTE((card | transfer), packed) shipped) WITHIN INTERVAL '7' DAY
  SUBSET ready = (card, transfer, packed)
  DEFINE placed   AS status = 'placed',
         card     AS status = 'paid_by_card',
         transfer AS status = 'paid_by_transfer',
         packed   AS status = 'packed',
         shipped  AS status = 'shipped'
)
