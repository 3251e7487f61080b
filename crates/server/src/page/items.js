// Which view an item has.

import { el } from './dom.js';
import { AgentMessage, UserMessage } from './item-message.js';
import { Compaction, Failure, Notice } from './item-notice.js';
import { Reasoning } from './item-reasoning.js';
import { ToolCard } from './item-tool.js';
import { PlanCard, QuestionCard } from './item-wait.js';

const VIEWS = {
  user: UserMessage,
  assistant: AgentMessage,
  reasoning: Reasoning,
  tool: ToolCard,
  notice: Notice,
  question: QuestionCard,
  plan: PlanCard,
  compaction: Compaction,
  failure: Failure,
};

/// An item's view in its article: `{node, update(item)}`.
export function itemView(item, context) {
  const view = new VIEWS[item.kind](item, context);
  const node = el(
    'article',
    { class: `item item-${item.kind}`, dataset: { kind: item.kind } },
    view.whole,
  );
  return {
    node,
    update() {
      view.update(item);
      node.setAttribute('aria-label', view.label);
    },
    /// A second has passed.
    tick(now) {
      view.tick?.(now);
    },
  };
}
