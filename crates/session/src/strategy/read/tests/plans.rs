use super::*;

const BOUNDS: PlanBounds = PlanBounds { nodes: 8, layers: 4, attempts: 3, refine: 2 };

/// `a(b c)`: what each needs, by name.
fn told(plan: &Plan) -> String {
    let name = |at: &u32| plan.nodes[*at as usize].name.to_string();
    let node = |node: &PlannedNode| match node.needs.is_empty() {
        true => node.name.to_string(),
        false => {
            let needs: Vec<String> = node.needs.iter().map(name).collect();
            format!("{}({})", node.name, needs.join(" "))
        }
    };
    plan.nodes.iter().map(node).collect::<Vec<_>>().join(" ")
}

const PLANS: &[(&str, &str)] = &[
    (
        r#"{"nodes": [{"id": "a", "task": "x"}, {"id": "b", "task": "y", "needs": ["a"]}]}"#,
        "a b(a)",
    ),
    (
        "Here:\n```json\n{\"nodes\": [{\"id\": \"a\", \"task\": \"x\",},], \"edges\": [],}\n```\nGood luck!",
        "a",
    ),
    (r#"{"nodes": [{"id": 1, "task": "x"}, {"id": 2, "task": "y", "needs": [1]}]}"#, "1 2(1)"),
    (r#"{"nodes": [{"task": "x"}, {"task": "y", "needs": [1]}]}"#, "task_1 task_2(task_1)"),
    (r#"[{"id": "a", "task": "x"}, {"id": "b", "task": "y", "depends_on": "a"}]"#, "a b(a)"),
    (
        r#"{"tasks": [{"id": "a", "task": "x"}, {"id": "b", "task": "x"},
        {"id": "c", "task": "y", "needs": "a, b"}]}"#,
        "a b c(a b)",
    ),
    (
        r#"{"nodes": [{"id": "a", "description": "x"}, {"id": "b", "description": "y"}],
        "edges": [["a", "b"]]}"#,
        "a b(a)",
    ),
    (
        r#"{"nodes": [{"id": "a", "task": "x"}, {"id": "b", "task": "y"}],
        "edges": [{"from": "a", "to": "b"}, "a -> b"]}"#,
        "a b(a)",
    ),
    (
        r#"{"nodes": ["read", "write"], "dependencies": {"task_2": ["task_1"]}}"#,
        "task_1 task_2(task_1)",
    ),
    (r#"{"nodes": {"a": "read", "b": {"task": "write", "needs": ["a"]}}}"#, "a b(a)"),
    (r#"{"plan": {"nodes": [{"id": "a", "task": "x"}]}}"#, "a"),
    (r#"{"id": "a", "task": "x"}"#, "a"),
    (
        "{\"id\": \"a\", \"task\": \"x\"}\n{\"id\": \"b\", \"task\": \"y\", \"needs\": [\"a\"]}",
        "a b(a)",
    ),
    (
        r#"{"nodes": [{"id": "a b", "task": "x"}, {"id": "b", "task": "y", "needs": ["A_B"]}]}"#,
        "a b b(a b)",
    ),
    (
        r#"{"nodes": [{"id": "v1.2", "task": "x"}, {"id": "b", "task": "y", "needs": ["v1.2"]}]}"#,
        "v1_2 b(v1_2)",
    ),
    (r#"{"nodes": [{"id": "a", "task": "x", "needs": ["none"]}]}"#, "a"),
    (
        r#"A draft: {"nodes": [{"id": "x", "task": "x"}]}. Now the plan:
        {"nodes": [{"id": "a", "task": "x"}]}"#,
        "a",
    ),
    ("1. read\n2. compare\n3. write", "task_1 task_2(task_1) task_3(task_2)"),
    ("- 读文件\n- 写", "task_1 task_2(task_1)"),
];

#[test]
fn plans_are_read_as_models_write_them() {
    for (text, want) in PLANS {
        let plan = plan(text, BOUNDS).unwrap_or_else(|why| panic!("{text}: {why}"));
        assert_eq!(told(&plan), *want, "{text}");
        assert_eq!(plan.repaired, [""; 0], "{text}");
    }
    for none in
        ["", "No.", "{}", "[]", "{\"nodes\": []}", "[1]", "{\"nodes\": 3}", "{\"nodes\": [\"\"]}"]
    {
        assert!(plan(none, BOUNDS).is_err() && lenient_plan(none, BOUNDS).is_err(), "{none}");
    }
}

/// What is wrong, what a model is told of it, and what is made of it when it says it again.
const REPAIRS: &[(&str, Result<&str, &str>, &str)] = &[
    (
        r#"[{"id": "a", "task": "a", "needs": ["b"]}, {"id": "b", "task": "b", "needs": ["a"]}]"#,
        Err("The plan has a cycle: a -> b -> a"),
        "a(b) b",
    ),
    (
        r#"[{"id": "a", "task": "a", "needs": ["a"]}]"#,
        Ok("1 edges to themselves or to unknown nodes are left out"),
        "a",
    ),
    (
        r#"[{"id": "a", "task": "a", "needs": ["x", "b"]}, {"id": "b", "task": "b"}]"#,
        Ok("1 edges to themselves or to unknown nodes are left out"),
        "a(b) b",
    ),
    (
        r#"[{"id": "a", "task": "1"}, {"id": "a", "task": "2"}, {"id": "a", "task": "3", "needs": ["a_2"]}]"#,
        Ok("the second \"a\" is called \"a_2\"; the second \"a\" is called \"a_3\""),
        "a a_2 a_3(a_2)",
    ),
    // Only what closes the cycle goes: what was told last is still needed first.
    (
        r#"[{"id": "all", "task": "all", "needs": ["a", "b"]}, {"id": "a", "task": "a"},
        {"id": "b", "task": "b", "needs": ["c"]}, {"id": "c", "task": "c", "needs": ["b"]}]"#,
        Err("The plan has a cycle: b -> c -> b"),
        "all(a b) a b(c) c",
    ),
    (
        r#"{"nodes": [{"id": "a", "task": "x"}, {"id": "b", "task": "half"#,
        Err("The answer ends before the plan does"),
        "a",
    ),
    (
        "1. a\n2. b\n3. c\n4. d\n5. e\n6. f",
        Err("The plan has 6 layers; at most 4 are allowed"),
        "task_1 task_2(task_1) task_3(task_2) task_6(task_3)",
    ),
    (
        r#"["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]"#,
        Err("The plan has 10 nodes; at most 8 are allowed"),
        "task_1 task_2 task_3 task_4 task_5 task_6 task_7 task_10",
    ),
];

#[test]
fn what_is_wrong_is_told_once_and_then_repaired() {
    for (text, first, then) in REPAIRS {
        match (plan(text, BOUNDS), first) {
            (Ok(plan), Ok(repaired)) => assert_eq!(plan.repaired.join("; "), **repaired, "{text}"),
            (Err(why), Err(told)) => assert_eq!(&*why, *told, "{text}"),
            (other, _) => panic!("{text}: {other:?}"),
        }
        let plan = lenient_plan(text, BOUNDS).unwrap();
        assert_eq!(told(&plan), *then, "{text}");
        sound(&plan, BOUNDS);
    }
}

#[test]
fn what_is_beyond_the_bounds_is_done_all_the_same() {
    let plan = lenient_plan("1. a\n2. b\n3. c\n4. d\n5. e\n6. f", BOUNDS).unwrap();
    let last = plan.nodes.last().unwrap();
    assert_eq!(&*last.task, "Do these, one after the other:\n1. d\n2. e\n3. f");
    let one = PlanBounds { nodes: 1, layers: 1, ..BOUNDS };
    let plan = lenient_plan("1. a\n2. b", one).unwrap();
    assert_eq!(plan.nodes.len(), 1);
    assert!(plan.nodes[0].task.ends_with("1. a\n2. b"));
    let flat = PlanBounds { layers: 1, ..BOUNDS };
    let text = r#"[{"id": "a", "task": "a"}, {"id": "b", "task": "b"},
        {"id": "c", "task": "c", "needs": ["b"]}]"#;
    assert_eq!(told(&lenient_plan(text, flat).unwrap()), "a c", "b and c are one");
}

#[test]
fn tries_and_refinements_are_held_to_their_bounds() {
    let text = r#"[{"id": "a", "task": "a", "attempts": 99, "refine": 99},
        {"id": "b", "task": "b", "attempts": 0, "refine": -1},
        {"id": "c", "task": "c", "attempts": "2", "refine": true},
        {"id": "d", "task": "d", "attempts": 1e300, "refine": 2.0}]"#;
    let plan = plan(text, BOUNDS).unwrap();
    let numbers: Vec<_> = plan.nodes.iter().map(|node| (node.attempts, node.refine)).collect();
    assert_eq!(numbers, [(3, 2), (1, 0), (2, 1), (3, 2)]);
}

/// Whatever was written, a plan is this.
pub fn sound(plan: &Plan, bounds: PlanBounds) {
    let count = plan.nodes.len();
    assert!((1..=bounds.nodes.max(1) as usize).contains(&count), "{count} nodes");
    let mut names: Vec<&Text> = plan.nodes.iter().map(|node| &node.name).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count, "each has a name of its own");
    for (at, node) in plan.nodes.iter().enumerate() {
        assert!(node.needs.iter().all(|need| (*need as usize) < count && *need as usize != at));
        assert!(node.needs.is_sorted_by(|one, other| one < other), "each once");
        assert!((1..=bounds.attempts.max(1)).contains(&node.attempts));
        assert!(node.refine <= bounds.refine);
        assert!(node.task.len() <= TEXT_BYTES_MAX + 3 && !node.task.trim().is_empty());
        // A doubled name has a number behind it.
        assert!(node.name.len() <= NAME_BYTES_MAX + 3 + 6, "{}", node.name);
        assert!(!node.name.is_empty() && !node.name.contains(['.', '\n']));
    }
    // Layer by layer, by hand: in a cycle nobody is ever ready.
    let (mut done, mut layers) = (vec![false; count], 0);
    while done.iter().any(|done| !done) {
        let ready = |at: &usize| {
            !done[*at] && plan.nodes[*at].needs.iter().all(|need| done[*need as usize])
        };
        let ready: Vec<usize> = (0..count).filter(ready).collect();
        assert!(!ready.is_empty(), "a cycle in {plan:?}");
        ready.into_iter().for_each(|at| done[at] = true);
        layers += 1;
    }
    assert!(layers <= bounds.layers.max(1), "{layers} layers of {}", bounds.layers);
    let repaired: usize = plan.repaired.iter().map(String::len).sum();
    assert!(repaired <= 16 * 1024, "{repaired} bytes of repairs");
}
