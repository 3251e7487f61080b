//! Groups, conditions and loops.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::super::expand::{Kind, Value};
use super::super::grammar::{Body, List, Piece, Word};
use super::builtin::is_own_variable;
use super::{Ends, State, States, Stream, Walk, union};

/// Values for which the body of a loop is gone through.
const VALUES_MAX: usize = 200;

impl Walk<'_> {
    pub(super) fn compound(
        &self,
        body: &Body,
        from: &States,
        stdin: &Stream,
    ) -> Result<Ends, String> {
        match body {
            Body::Simple(_) => Ok(Ends::both(from.clone())), // Done before, with what is piped in.
            Body::Group(list) => self.list(list, from, stdin),
            Body::Subshell(list) => {
                self.list(list, from, stdin)?;
                Ok(Ends::both(from.clone()))
            }
            Body::If { arms, otherwise } => self.condition(arms, otherwise.as_ref(), from, stdin),
            Body::While { condition, body } => self.repeat(condition, body, from, stdin),
            Body::For { name, words, body } => self.for_each(name, words, body, from, stdin),
            Body::Conditional(words) => {
                for state in from {
                    self.conditional(words, state)?;
                }
                Ok(Ends::both(from.clone()))
            }
        }
    }

    fn condition(
        &self,
        arms: &[(List, List)],
        otherwise: Option<&List>,
        from: &States,
        stdin: &Stream,
    ) -> Result<Ends, String> {
        let mut after = States::new();
        let mut next = from.clone();
        for (condition, body) in arms {
            let ends = self.list(condition, &next, stdin)?;
            after = union(&after, &self.list(body, &ends.yes, stdin)?.any()?)?;
            next = ends.no;
        }
        if let Some(body) = otherwise {
            next = self.list(body, &next, stdin)?.any()?;
        }
        Ok(Ends::both(union(&after, &next)?))
    }

    fn repeat(
        &self,
        condition: &List,
        body: &List,
        from: &States,
        stdin: &Stream,
    ) -> Result<Ends, String> {
        if !begins_with_read(condition) {
            return Err("a loop that may never end".to_owned());
        }
        let mut names = BTreeSet::new();
        assigned(condition, &mut names);
        assigned(body, &mut names);
        let from = forget(from, &names);
        let ends = self.list(condition, &from, stdin)?;
        let after = union(&self.list(body, &ends.yes, stdin)?.any()?, &ends.any()?)?;
        stays(&forget(&after, &names), &from)?;
        Ok(Ends::both(from))
    }

    fn for_each(
        &self,
        name: &str,
        words: &[Word],
        body: &List,
        from: &States,
        stdin: &Stream,
    ) -> Result<Ends, String> {
        if !is_own_variable(name) {
            return Err(format!("`{name}` may mean something to bash"));
        }
        let mut names = BTreeSet::from([name.to_owned()]);
        assigned(body, &mut names);
        let from = forget(from, &names);
        for state in &from {
            let mut values = Vec::new();
            for arg in self.arguments(words, state)? {
                let value = match arg.kind {
                    Kind::Literal | Kind::Matched => Value::Is(arg.text),
                    Kind::Found(found) => Value::Found(found),
                    Kind::Unknown | Kind::AnyWords | Kind::Pipe => Value::Unknown,
                };
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            if values.len() > VALUES_MAX {
                return Err(format!("a loop over more than {VALUES_MAX} values"));
            }
            for value in values {
                let start = vec![Rc::new(state.with(name, value))];
                let after = self.list(body, &start, stdin)?.any()?;
                stays(&forget(&after, &names), &vec![state.clone()])?;
            }
        }
        Ok(Ends::both(from))
    }
}

/// A loop over what is read ends when there is no more of it.
fn begins_with_read(condition: &List) -> bool {
    let first = condition.items.first().map(|(_, pipeline)| pipeline);
    let commands = first.filter(|first| !first.negated).map(|first| first.commands.as_slice());
    match commands {
        Some([command]) => match &command.body {
            Body::Simple(simple) => simple.words.first().and_then(Word::bare) == Some("read"),
            _ => false,
        },
        _ => false,
    }
}

/// Nothing is known any more of these variables, and of where `cd -` leads.
fn forget(states: &States, names: &BTreeSet<String>) -> States {
    let forget = |state: &Rc<State>| {
        let with = |state: State, name: &String| state.with(name, Value::Unknown);
        let state = State { before: None, ..State::clone(state) };
        Rc::new(names.iter().fold(state, with))
    };
    states.iter().map(forget).collect()
}

/// The next time round must find what the first found.
fn stays(after: &States, before: &States) -> Result<(), String> {
    match after.iter().all(|state| before.contains(state)) {
        true => Ok(()),
        false => Err("a loop that changes the directory it is in".to_owned()),
    }
}

/// The variables that a list sets; one that is missed makes the next time round differ.
fn assigned(list: &List, names: &mut BTreeSet<String>) {
    let commands = list.items.iter().flat_map(|(_, pipeline)| &pipeline.commands);
    for command in commands {
        match &command.body {
            Body::Simple(simple) => {
                names.extend(simple.assignments.iter().map(|(name, _)| name.clone()));
                let mut words = simple.words.iter().filter_map(Word::bare);
                if words.next() == Some("read") {
                    let reads = words.filter(|word| is_own_variable(word));
                    names.extend(reads.map(str::to_owned));
                }
            }
            Body::Group(list) | Body::Subshell(list) => assigned(list, names),
            Body::If { arms, otherwise } => {
                for (condition, body) in arms {
                    assigned(condition, names);
                    assigned(body, names);
                }
                otherwise.iter().for_each(|list| assigned(list, names));
            }
            Body::While { condition, body } => {
                assigned(condition, names);
                assigned(body, names);
            }
            Body::For { name, body, .. } => {
                names.insert(name.clone());
                assigned(body, names);
            }
            Body::Conditional(_) => {}
        }
    }
}

/// Whether a word is written out, so that nothing unknown can become a program.
pub(super) fn is_written_out(word: &Word) -> bool {
    word.pieces.iter().all(|piece| matches!(piece, Piece::Bare(_) | Piece::Quoted(_)))
}
