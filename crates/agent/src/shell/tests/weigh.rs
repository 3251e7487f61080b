//! How risky commands are, and what "always" covers.

use polyloop_session::policy::Risk;

use super::super::risk::COMMANDS_MAX;
use super::super::show::brief;
use super::super::*;
use super::{Ground, ground};

#[test]
fn risk_follows_what_a_command_could_do() {
    let ground = ground();
    let inside = format!("rm -rf {}", ground.cwd.join("src").display());
    let itself = format!("rm -rf {}", ground.cwd.display());
    use Risk::{High, Low, Medium};
    let rows = [
        ("ls", Low),
        ("grep -rn TODO src", Low),
        ("cat /etc/passwd", Medium),
        ("touch a", Medium),
        ("cargo test", Medium),
        ("git commit -m x", Medium),
        ("git push", High),
        ("git push --force", High),
        ("git -C src fetch", High),
        ("rm -rf src", Medium),
        ("rm -rf 'src' *.o", Medium),
        (inside.as_str(), Medium),
        (itself.as_str(), High),
        ("rm -rf .", High),
        ("rm -rf /", High),
        ("rm -rf /tmp", High),
        ("rm -rf ~", High),
        ("rm -rf $HOME/x", High),
        ("rm -rf ../out", High),
        ("ls && rm -rf /var", High),
        ("rm -rf -- -x /var", High),
        ("find /var -delete", High),
        ("find . -delete", Medium),
        ("find src /var -delete", High),
        ("find . -exec rm {} +", Medium),
        ("find . -name x -exec rm -rf {} \\;", Medium),
        ("find /var -exec rm {} +", High),
        ("find . -exec rm {} /var/x +", High),
        ("find .. -name x -exec rm {} +", High),
        ("xargs -I{} rm {}", High),
        ("sudo ls", High),
        ("env sudo ls", High),
        ("nohup curl x", High),
        ("curl https://x", High),
        ("curl https://x | sh", High),
        ("cat x | sh", High),
        ("cat x | /bin/bash -s", High),
        ("cat x |& python3 -", High),
        ("cat x || sh y", Medium),
        ("echo $(curl x)", High),
        ("echo \"$(curl x)\"", High),
        ("echo `curl x`", High),
        ("bash -c 'curl x'", High),
        ("bash -c 'ls; sudo x'", High),
        ("xargs -n1 rm -rf /var", High),
        ("env bash -c 'ls; curl x'", High),
        ("find . -exec sudo x +", High),
        ("xargs git push", High),
        ("dd if=a of=/dev/sda", High),
        ("echo x > /dev/sda", High),
        ("echo x > /dev/null", Low),
        ("ls >/dev/null 2>&1", Low),
        ("echo x > /etc/hosts", High),
        ("echo x >> out.txt", Medium),
        ("touch x && cp a.txt /etc/x", High),
        ("cp /etc/hosts x", Medium),
        ("mv /etc/hosts x", High),
        ("chmod 777 a.txt", Medium),
        ("chmod 777 /etc/x", High),
        ("sed -i s/a/b/ a.txt", Medium),
        ("sed -n 1p /etc/hosts", Medium),
        ("grep -rn curl src | head", Low),
        ("for f in *; do curl $f; done", High),
        ("X=1 sudo ls", High),
        ("docker ps", Medium),
        ("kubectl get pods", High),
        ("npm install x", High),
        ("pip install x", High),
        ("python3.12 x.py", Medium),
        ("mkfs.ext4 x", High),
        ("$'curl' x", High),
    ];
    for (script, risk) in rows {
        let judged = ground.judge(script);
        assert_eq!(judged.risk, risk, "{script:?}: {}", judged.reason);
        assert!(judged.keys.iter().all(|key| key.risk == risk), "{script:?}");
    }
    for (script, risk) in [("rm -rf /tmp/cache", Medium), ("rm -rf /tmp", High)] {
        assert_eq!(judge(script, &ground.cwd).risk, risk, "{script:?}");
    }
}

/// Neither length nor depth makes a judgement slow, or weaker.
#[test]
fn large_scripts_are_judged_in_no_time() {
    let ground = ground();
    let fill = |piece: &str| piece.repeat(SCRIPT_BYTES_MAX / piece.len());
    let scripts = [
        fill("env "),
        fill("rm a "),
        fill("rm a;"),
        fill("xargs rm a "),
        fill("bash -c '"),
        fill("env git "),
        fill("\"$("),
        fill("\"`"),
        fill("ls a "),
        fill("$("),
        fill("cat ../"),
        fill("echo "),
        fill("'\""),
        fill("touch a "),
        fill("a/"),
        fill("../"),
    ];
    let deep = format!("cat {}x", "a/".repeat(40));
    let before = std::time::Instant::now();
    assert!(ground.judge(&deep).safe);
    for script in &scripts {
        let judged = ground.judge(script);
        assert!(!judged.safe, "{}", brief(script));
    }
    // Generous: a quadratic reader takes minutes.
    assert!(before.elapsed() < std::time::Duration::from_secs(30));
    let hidden = format!("{}curl x", "true;".repeat(COMMANDS_MAX));
    assert_eq!(ground.judge(&hidden).risk, Risk::High);
}

fn key(script: &str, ground: &Ground) -> String {
    let judged = ground.judge(script);
    assert_eq!(judged.keys.len(), 1, "{script:?}");
    judged.keys[0].what.to_string()
}

#[test]
fn keys_are_as_wide_as_they_should_be() {
    let ground = ground();
    let rows = [
        ("git push", "bash:prefix:git push"),
        ("git push -u origin main", "bash:prefix:git push"),
        ("git tag v1", "bash:prefix:git tag"),
        ("cargo test --lib", "bash:prefix:cargo test"),
        ("npm run build", "bash:prefix:npm run build"),
        ("docker compose up", "bash:prefix:docker compose up"),
        ("go mod tidy", "bash:prefix:go mod tidy"),
        ("kubectl get pods", "bash:prefix:kubectl get"),
        ("pip install x", "bash:prefix:pip install"),
        ("apt install x", "bash:prefix:apt install"),
        ("touch a", "bash:program:touch"),
        ("touch 'b' c", "bash:program:touch"),
        ("touch -m a", "bash:program:touch|-m"),
        ("touch -a -m a", "bash:program:touch|-a|-m"),
        ("touch '-a|-m' a", "bash:program:touch|'-a|-m'"),
        ("touch -- -m", "bash:program:touch"),
        ("mkdir -p x/y", "bash:program:mkdir|-p"),
        ("touch /etc/x", "bash:exact:touch /etc/x"),
        ("touch ../x", "bash:exact:touch ../x"),
        ("touch linked/x", "bash:exact:touch linked/x"),
        ("touch dangling", "bash:exact:touch dangling"),
        ("rm a", "bash:exact:rm a"),
        ("rm  'a'", "bash:exact:rm a"),
        ("rm 'a b'", "bash:exact:rm 'a b'"),
        ("mv a b", "bash:exact:mv a b"),
        ("chmod 777 a", "bash:exact:chmod 777 a"),
        ("kill 1", "bash:exact:kill 1"),
        ("sudo touch a", "bash:exact:sudo touch a"),
        ("curl x", "bash:exact:curl x"),
        ("python -c x", "bash:exact:python -c x"),
        ("python3.12 x.py", "bash:exact:python3.12 x.py"),
        ("bash x.sh", "bash:exact:bash x.sh"),
        ("make test", "bash:exact:make test"),
        ("./touch a", "bash:exact:./touch a"),
        ("git push --force", "bash:exact:git push --force"),
        ("git push -f", "bash:exact:git push -f"),
        ("git push origin +main", "bash:exact:git push origin +main"),
        ("git push origin :main", "bash:exact:git push origin :main"),
        ("git tag -d v1", "bash:exact:git tag -d v1"),
        ("git -c core.pager=x push", "bash:exact:git -c core.pager=x push"),
        ("git reset --hard", "bash:exact:git reset --hard"),
        ("git submodule foreach x", "bash:exact:git submodule foreach x"),
        ("git grep -Ox y", "bash:exact:git grep -Ox y"),
        ("git", "bash:exact:git"),
        ("docker run x", "bash:exact:docker run x"),
        ("docker compose exec x", "bash:exact:docker compose exec x"),
        ("npm run", "bash:exact:npm run"),
        ("touch a; touch b", "bash:exact:touch a; touch b"),
        ("git push\nrm x", "bash:exact:git push\nrm x"),
    ];
    for (script, want) in rows {
        assert_eq!(key(script, &ground), want);
    }
    let long = format!("echo {}; x", "y".repeat(2000));
    let other = format!("echo {}; z", "y".repeat(2000));
    assert!(key(&long, &ground).starts_with("bash:sha256:"));
    assert_ne!(key(&long, &ground), key(&other, &ground));
}

#[test]
fn the_sentence_says_what_the_key_covers() {
    let ground = ground();
    let rows = [
        ("git push origin", "`git push` with any arguments"),
        ("touch -m a", "`touch -m` with any other words that stay inside"),
        ("rm -rf build", "exactly `rm -rf build`"),
        ("ls | sh \u{202e}", "exactly `ls | sh \\u{202e}`"),
    ];
    for (script, part) in rows {
        let covers = judge(script, &ground.cwd).covers;
        assert!(covers.contains(part) && covers.ends_with("for this session"), "{covers}");
    }
}
