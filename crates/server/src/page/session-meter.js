// How full the model's window is, and what the session has used.

const LEVELS = [
  [0.95, 'critical'],
  [0.9, 'high'],
  [0.8, 'medium'],
  [0, 'normal'],
];

export function emptyMeter() {
  return {
    used: null,
    window: null,
    fraction: 0,
    level: 'normal',
    costUsd: null,
    sessionUsage: null,
  };
}

/// Takes in how full the window is.
export function measure(meter, used, window, fraction) {
  meter.used = used ?? meter.used;
  meter.window = window ?? meter.window;
  const share = fraction ?? (meter.window ? meter.used / meter.window : 0);
  meter.fraction = Number.isFinite(share) ? share : 0;
  meter.level = LEVELS.find(([from]) => meter.fraction >= from)?.[1] ?? 'normal';
}

/// Adds a call to what the session was last said to have used.
export function spend(meter, usage) {
  if (!meter.sessionUsage || !usage) return;
  for (const name of ['input_tokens', 'output_tokens', 'cached_tokens', 'total_tokens']) {
    meter.sessionUsage[name] = (meter.sessionUsage[name] ?? 0) + (usage[name] ?? 0);
  }
  if (typeof usage.cost_usd === 'number') {
    meter.costUsd = (meter.costUsd ?? 0) + usage.cost_usd;
    meter.sessionUsage.cost_usd = meter.costUsd;
  }
}
