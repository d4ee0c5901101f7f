-- id: funnel
SELECT *
FROM clicks MATCH_RECOGNIZE (
  PARTITION BY user_id
  ORDER BY ts
  MEASURES FIRST(viewed.ts) AS viewed_at, bought.ts AS bought_at, COUNT(other.*) AS others
  PATTERN (viewed other*? carted other*? bought) WITHIN INTERVAL '1' HOUR
  DEFINE viewed AS action = 'view',
         carted AS action = 'cart',
         bought AS action = 'purchase'
)
