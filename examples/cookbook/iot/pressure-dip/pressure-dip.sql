-- id: pressure-dip
-- description: Pressure that falls by a fifth and comes back
SELECT pipe, from_bar, lowest, to_bar, from_bar - lowest AS depth
FROM pressures MATCH_RECOGNIZE (
  PARTITION BY pipe
  ORDER BY ts
  MEASURES before.bar     AS from_bar,
           LAST(down.bar) AS lowest,
           back.bar       AS to_bar
  AFTER MATCH SKIP TO LAST back
  PATTERN (before down+ up*? back) WITHIN INTERVAL '10' MINUTE
  DEFINE down AS bar < PREV(bar),
         up   AS bar > PREV(bar) AND LAST(down.bar) <= 0.8 * before.bar,
         back AS bar > PREV(bar) AND LAST(down.bar) <= 0.8 * before.bar AND bar >= 0.95 * before.bar
)
