"""The end of a kill run: after all the kills every session must still be of use.

Each one gets a new message and must answer it, is replayed from its start to somebody new, and is
listed. What commands wrote is counted: none may have run twice.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from recorder import Recorder, Return
from user import Session

if TYPE_CHECKING:
    from kill import KillRun

RESUME_SECONDS_MAX = 60
# Sessions that are tried at the same time.
TOGETHER_MAX = 8


async def all_of(run: KillRun) -> None:
    """Every session answers once more, and its whole record can be replayed."""
    everyone = run.sessions + run.retired
    for session in run.retired:
        await session.leave()
    places = asyncio.Semaphore(TOGETHER_MAX)
    await asyncio.gather(*(_one(run, session, places) for session in everyone))
    await run.no_survivors(set())
    listed = {one["id"] for one in (await run.server.get("/sessions"))["sessions"]}
    for session in everyone:
        if session.id not in listed:
            run.fail(f"{session.id} is not listed")
    await run.server.stop()


async def _one(run: KillRun, session: Session, places: asyncio.Semaphore) -> None:
    async with places:
        try:
            async with asyncio.timeout(RESUME_SECONDS_MAX):
                await _resume(run, session)
        except TimeoutError:
            run.tally.sessions_not_resumed += 1
            run.fail(f"{session.id}: no answer to a new message in {RESUME_SECONDS_MAX} s")
        # Named first: others add to the same sum while this one waits.
        seen = await run.compare(session)
        run.tally.characters_seen += seen
        await _replay(run, session)
    _count_runs(run, session)
    run.tally.approvals_answered_in_a_later_life += session.answered_in_a_later_life


async def _resume(run: KillRun, session: Session) -> None:
    speaker = session.recorders[0]
    if not speaker.connected:
        await session.connect(run.server.address, [Return.CURSOR])
    word = session.name("last")
    await session.rest(run.server.address)
    while speaker.loading:
        await _one_answer(run, session, speaker, word)
    # It also leaves a process behind, which must not outlive its command.
    await session.say(speaker, f"say: {word}\nrun: sleep 300.{run.mark} & echo {word}")
    while not _answered(speaker, word):
        await _one_answer(run, session, speaker, word)


async def _one_answer(run: KillRun, session: Session, speaker: Recorder, word: str) -> None:
    """Lets everything run that ends by itself, then waits for more to happen."""
    speaker.news.clear()
    request = speaker.open_request
    if request is not None and session.answered.get(request["id"]) != run.life:
        text = json.dumps(request["payload"])
        lasts = run.mark in text and word not in text
        await session.answer(speaker, request, "no-continue" if lasts else "yes", run.life)
    await speaker.news.wait()


def _answered(speaker: Recorder, word: str) -> bool:
    """Said, run and finished, in this order."""
    said, ran = "", False
    for shown in speaker.visits[-1].shown:
        payload = shown.message["payload"]
        if shown.item is not None:
            said += shown.text
        elif payload.get("type") == "function_call_output" and word in payload["output"]:
            ran = word in said
        elif shown.message["type"] == "agent_finished" and ran:
            return True
    return False


async def _replay(run: KillRun, session: Session) -> None:
    """One who sees all of it for the first time sees what is recorded."""
    await asyncio.gather(*(recorder.drop() for recorder in session.recorders))
    newcomer = Recorder(session.id, "newcomer")
    session.recorders, session.baseline = [newcomer], 0
    await newcomer.connect(run.server.address, Return.FROM_THE_START)
    await newcomer.attached()
    replayed = await run.compare(session)
    run.tally.characters_replayed += replayed
    await newcomer.drop()


def _count_runs(run: KillRun, session: Session) -> None:
    """A command may not have run, because it was denied or killed; it never ran twice."""
    for name in session.once:
        path = run.server.workspace / name
        runs = len(path.read_text().splitlines()) if path.exists() else 0
        run.tally.commands_run_once += runs == 1
        if runs == 0 and name in session.ran:
            run.fail(f"{session.id}: the command of {name} was shown to run and did not")
        if runs > 1:
            run.tally.commands_run_twice += 1
            run.fail(f"{session.id}: the command of {name} ran {runs} times")
