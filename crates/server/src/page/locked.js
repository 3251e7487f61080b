// A card whose answer is on its way: it takes no second one.

/// The keyboard stays with the card: what is disabled would lose it.
export function lock(card) {
  if (card.contains(document.activeElement)) card.focus({ preventScroll: true });
  card.classList.add('sent');
  for (const button of card.querySelectorAll('button')) button.disabled = true;
}

export function isLocked(card) {
  return card.classList.contains('sent');
}
