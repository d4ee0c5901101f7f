-- id: session
-- description: Clicks of a visitor with less than thirty minutes between them
SELECT visitor, first_click, last_click, clicks, landed_on, left_from
FROM clicks MATCH_RECOGNIZE (
  PARTITION BY visitor
  ORDER BY ts
  MEASURES FIRST(ts)   AS first_click,
           LAST(ts)    AS last_click,
           COUNT(*)    AS clicks,
           FIRST(page) AS landed_on,
           LAST(page)  AS left_from
  PATTERN (first_ more*) WITHIN INTERVAL '8' HOUR
  DEFINE more AS ts < PREV(ts) + INTERVAL '30' MINUTE
)
