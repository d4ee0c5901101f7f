-- id: rising-trend-sql
-- description: Five readings in a row that rise, by a third in all
SELECT *
FROM vibrations MATCH_RECOGNIZE (
  PARTITION BY machine
  ORDER BY ts
  MEASURES low.level AS "from", high.level AS "to"
  PATTERN (low rise{3} high) WITHIN INTERVAL '1' HOUR
  DEFINE rise AS level > PREV(level),
         high AS level > PREV(level) AND level >= 1.33 * low.level
)
