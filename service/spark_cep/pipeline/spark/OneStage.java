package spark_cep;

import java.util.Collections;
import java.util.Set;
import java.util.WeakHashMap;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.MicroBatchScanExec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import scala.runtime.AbstractFunction1;

/**
 * Takes the shuffle out of the plan of a batch whose source has a task for each state partition, with what that
 * partition needs. The source says so in the offset at which the batch ends.
 */
public class OneStage extends Rule {
  private static final Set SESSIONS = Collections.newSetFromMap(new WeakHashMap());
  private String mark;

  /** Applies to queries that the session starts from now on. Offsets that say so have the text {@code mark}. */
  public void use(SparkSessionExtensions session, String mark) {
    this.mark = mark;
    if (SESSIONS.add(session)) {
      final ColumnarRule rule = new BeforeColumns(this);
      session.injectColumnar(new AbstractFunction1() {
        public Object apply(Object each) {
          return rule;
        }
      });
    }
  }

  public TreeNode apply(TreeNode plan) {
    if (plan instanceof ShuffleExchangeExec && this.isOneStage((ShuffleExchangeExec) plan)) {
      return ((ShuffleExchangeExec) plan).child();
    }
    final OneStage rule = this;
    return plan.mapChildren(new AbstractFunction1() {
      public Object apply(Object child) {
        return rule.apply((TreeNode) child);
      }
    });
  }

  private boolean isOneStage(ShuffleExchangeExec shuffle) {
    SparkPlan leaf = shuffle.child();
    while (leaf.children().size() == 1) {
      leaf = (SparkPlan) leaf.children().head();
    }
    if (!(leaf instanceof MicroBatchScanExec)) {
      return false;
    }
    MicroBatchScanExec scan = (MicroBatchScanExec) leaf;
    return scan.end().json().contains(this.mark)
        && scan.inputPartitions().size() == shuffle.outputPartitioning().numPartitions();
  }

  /** Spark has rules of this kind behind the one that adds shuffles. */
  public static class BeforeColumns extends ColumnarRule {
    private final Rule rule;

    public BeforeColumns(Rule rule) {
      this.rule = rule;
    }

    public Rule preColumnarTransitions() {
      return this.rule;
    }
  }
}
