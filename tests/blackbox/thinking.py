"""A session that is worked by one of the agents, with a model that answers by what it is asked."""

from harness import eq, eventually
from strategies import AGENTS, Thinker, world
from talk import spoken
from test_models import unasked

MESSAGE = "Find the number."


class Case:
    """A server with that model, a session of an agent, and a client that watches it."""

    def __init__(self, s, name, answers=world, asks=False, **env):
        self.s, self.name = s, name
        self.model = Thinker(answers, test=s.t)
        own = AGENTS.get(name, {"agent": name})
        self.agent = own["agent"]
        self.env = {**self.model.settings(ALLOW_BYPASS="true", MODEL_RETRIES="2"),
                    **own.get("env", {}), **env}
        self.server = s.server(env=self.env)
        wish = {"permission_mode": "suggest"} if asks else {}
        self.session = unasked(self.server, agent=self.agent, **wish)
        self.client = s.watcher(self.session, complete=False)
        self.watcher = s.agentloop(self.session, complete=False)
        self.frames, self.shown = [], []

    def ran(self):
        """Names of the commands that ran, in the order that they did."""
        file = self.s.work / "ran"
        return file.read_text().split() if file.exists() else []

    def hold_command(self, name):
        (self.s.work / f"hold-{name}").touch()

    def at_command(self, name):
        eventually((self.s.work / f"at-{name}").exists, f"the command {name} runs")

    def release_command(self, name):
        (self.s.work / f"hold-{name}").unlink()

    def turn(self, message=MESSAGE):
        """Plays a turn to its end; what was said last."""
        self.client.say(message)
        return self.ended()

    def ended(self):
        self.frames = self.client.until_end()
        eq(self.frames[-1]["type"], "turn_completed", f"{self.name}: end, {self.frames[-1]}")
        return spoken(self.frames)[-1]

    def kill(self, env=None):
        """Ends the server without a word, and starts another on the same files."""
        self.server.kill()
        self.server = self.s.server(env={**self.env, **(env or {})})
        self.client = self.s.watcher(self.session, complete=False)

    def resume(self):
        self.client.send("resume")
        return self.ended()
