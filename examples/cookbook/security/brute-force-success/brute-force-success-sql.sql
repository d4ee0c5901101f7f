-- id: brute-force-success-sql
-- description: Five failed log-ins or more, directly followed by one that succeeds
SELECT *
FROM logins MATCH_RECOGNIZE (
  PARTITION BY user
  ORDER BY ts
  MEASURES COUNT(fail.*)           AS failures,
           COUNT(DISTINCT fail.ip) AS addresses,
           ok.ip                   AS ip
  PATTERN (fail{5,} ok) WITHIN INTERVAL '10' MINUTE
  DEFINE fail AS outcome = 'failed',
         ok   AS outcome = 'ok'
)
