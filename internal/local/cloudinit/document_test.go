package cloudinit

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipwayhq/slipway/internal/fault"
)

func zipped(s string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.Bytes()
}

func plainFile(path, content string) *file {
	return &file{Path: path, Content: []byte(content), Owner: "root", Group: "root", Mode: 0o644}
}

func TestParse(t *testing.T) {
	meta := metadata{InstanceID: "i-1", LocalHostname: "node-1", Values: map[string]string{"zone": "a", "net.primary-ip": "10.0.0.1"}}
	cases := map[string]struct {
		reason  string
		in      string
		steps   []step
		skipped []string
	}{
		"empty": {
			reason: "a document without sections asks for nothing",
			in:     "#cloud-config\n",
		},
		"module order": {
			reason: "steps follow cloud-init's modules, not the document",
			in: `#cloud-config
runcmd: [last]
ntp: {enabled: true, servers: [a.example, b.example]}
write_files:
- {path: /late, content: late, defer: true}
- {path: /early, content: early}
bootcmd: [first]
`,
			steps: []step{
				{Section: "bootcmd", Script: &script{Text: "export INSTANCE_ID='i-1'\nfirst\n", Prologue: "export INSTANCE_ID='i-1'\n", Commands: []string{"first"}}},
				{Section: "write_files", File: plainFile("/early", "early")},
				{Section: "ntp", File: plainFile(timesyncdConfig, "[Time]\nNTP=a.example b.example\n")},
				{Section: "write_files", File: func() *file { f := plainFile("/late", "late"); f.deferred = true; return f }()},
				{Section: "runcmd", Script: &script{Text: "last\n", Commands: []string{"last"}}},
			},
		},
		"commands": {
			reason: "strings are shell text, lists are literal words, and state carries over from one to the next",
			in: `#cloud-config
runcmd:
- export A=1
- [echo, "it's $A", 2]
- null
- |
  if true; then
    echo "$A"
  fi
`,
			steps: []step{{Section: "runcmd", Script: &script{
				Text:     "export A=1\n'echo' 'it'\\''s $A' '2'\nif true; then\n  echo \"$A\"\nfi\n\n",
				Commands: []string{"export A=1", "'echo' 'it'\\''s $A' '2'", "", "if true; then\n  echo \"$A\"\nfi\n"},
			}}},
		},
		"jinja": {
			reason: "placeholders stand for instance data, under each of their names",
			in: `## template: jinja
#cloud-config
{# gone, with its line #}
write_files:
- path: /etc/name
  content: "{{ ds.meta_data.local_hostname }} {{ ds.meta_data.hostname }} {{v1.local_hostname}} {{ ds.meta_data['instance-id'] }} {{ ds.meta_data.zone }} {{ ds.meta_data.net.primary_ip }}"
- path: /etc/raw
  content: '{% raw %}{{ not.mine }}{% endraw %} {{ "{{" }}'
- path: /etc/missing
  content: '{{ ds.meta_data.nope }}'
`,
			steps: []step{
				{Section: "write_files", File: plainFile("/etc/name", "node-1 node-1 node-1 i-1 a 10.0.0.1")},
				{Section: "write_files", File: plainFile("/etc/raw", "{{ not.mine }} {{")},
				{Section: "write_files", File: plainFile("/etc/missing", "CI_MISSING_JINJA_VAR/nope")},
			},
		},
		"no jinja without its header": {
			reason: "braces are text in a plain document",
			in:     "#cloud-config\nwrite_files:\n- {path: /a, content: '{{ x }} {% y %}'}\n",
			steps:  []step{{Section: "write_files", File: plainFile("/a", "{{ x }} {% y %}")}},
		},
		"skipped": {
			reason: "what is not supported out is named, once each, in document order",
			in: `#cloud-config
packages: [curl]
disk_setup: {/dev/sdb: {layout: true}}
fs_setup: [{device: /dev/sdb}]
mounts: [[/dev/sdb, /data]]
write_files:
- {path: /a, source: {uri: "http://example.test/a"}}
users: [default]
`,
			skipped: []string{"packages", "disk_setup", "fs_setup", "mounts", "write_files.source", "users.default"},
		},
		"repeated section": {
			reason: "the last one counts",
			in:     "#cloud-config\nruncmd: [a]\nruncmd: [b]\n",
			steps:  []step{{Section: "runcmd", Script: &script{Text: "b\n", Commands: []string{"b"}}}},
		},
		"ntp off": {
			reason: "disabled means that no server is configured",
			in:     "#cloud-config\nntp: {enabled: false, servers: [a]}\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parse([]byte(tc.in), meta)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			want := document{Steps: tc.steps, Skipped: tc.skipped}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(file{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestParseFiles(t *testing.T) {
	b64 := base64.StdEncoding.EncodeToString
	cases := map[string]struct {
		reason string
		item   string
		want   file
	}{
		"defaults":          {"root, 0644, replace", "{path: /a}", file{Path: "/a", Content: []byte{}, Owner: "root", Group: "root", Mode: 0o644}},
		"clean path":        {"dots are resolved", "{path: /a/../b//c, content: x}", file{Path: "/b/c", Content: []byte("x"), Owner: "root", Group: "root", Mode: 0o644}},
		"owner and group":   {"both parts", "{path: /a, content: x, owner: 'u:g'}", file{Path: "/a", Content: []byte("x"), Owner: "u", Group: "g", Mode: 0o644}},
		"owner only":        {"the group stays root", "{path: /a, content: x, owner: u}", file{Path: "/a", Content: []byte("x"), Owner: "u", Group: "root", Mode: 0o644}},
		"quoted mode":       {"octal", "{path: /a, content: x, permissions: '640'}", file{Path: "/a", Content: []byte("x"), Owner: "root", Group: "root", Mode: 0o640}},
		"unquoted octal":    {"octal by its zero", "{path: /a, content: x, permissions: 0600}", file{Path: "/a", Content: []byte("x"), Owner: "root", Group: "root", Mode: 0o600}},
		"unquoted decimal":  {"YAML reads 420 as a decimal number", "{path: /a, content: x, permissions: 420}", file{Path: "/a", Content: []byte("x"), Owner: "root", Group: "root", Mode: 0o644}},
		"setuid":            {"four digits", "{path: /a, content: x, permissions: '04755'}", file{Path: "/a", Content: []byte("x"), Owner: "root", Group: "root", Mode: 0o4755}},
		"append":            {"kept", "{path: /a, content: x, append: true}", file{Path: "/a", Content: []byte("x"), Owner: "root", Group: "root", Mode: 0o644, Append: true}},
		"base64":            {"decoded", "{path: /a, encoding: base64, content: " + b64([]byte("hi\x00")) + "}", file{Path: "/a", Content: []byte("hi\x00"), Owner: "root", Group: "root", Mode: 0o644}},
		"gzip+base64":       {"base64 around gzip", "{path: /a, encoding: gzip+base64, content: " + b64(zipped("zip")) + "}", file{Path: "/a", Content: []byte("zip"), Owner: "root", Group: "root", Mode: 0o644}},
		"gzip as !!binary":  {"YAML's own base64 around gzip", "{path: /a, encoding: gzip, content: !!binary " + b64(zipped("zip")) + "}", file{Path: "/a", Content: []byte("zip"), Owner: "root", Group: "root", Mode: 0o644}},
		"number as content": {"its text", "{path: /a, content: 010}", file{Path: "/a", Content: []byte("010"), Owner: "root", Group: "root", Mode: 0o644}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			doc, err := parse([]byte("#cloud-config\nwrite_files:\n- "+tc.item+"\n"), metadata{})
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			want := []step{{Section: "write_files", File: &tc.want}}
			if diff := cmp.Diff(want, doc.Steps, cmp.AllowUnexported(file{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestParseUsers(t *testing.T) {
	doc, err := parse([]byte(`#cloud-config
users:
- name: capi
  gecos: "CAPI's user"
  groups: docker, wheel
  homedir: /home/capi
  shell: /bin/bash
  passwd: $6$x
  primary_group: ops
  lock_passwd: false
  inactive: true
  sudo: ALL=(ALL) NOPASSWD:ALL
  ssh_authorized_keys: [ssh-ed25519 AAAA me]
- plain
`), metadata{})
	if err != nil {
		t.Fatal(err)
	}
	want := []step{
		{Section: "users", Script: &script{Text: `getent group 'docker' >/dev/null || groupadd 'docker'
getent group 'wheel' >/dev/null || groupadd 'wheel'
getent group 'ops' >/dev/null || groupadd 'ops'
id -u 'capi' >/dev/null 2>&1 || { useradd --comment 'CAPI'\''s user' --groups 'docker,wheel' --home-dir '/home/capi' --shell '/bin/bash' --gid 'ops' --create-home 'capi' && printf '%s:%s\n' 'capi' '$6$x' | chpasswd -e; }
usermod --expiredate 1 'capi'
home=$(getent passwd 'capi' | cut -d: -f6)
mkdir -p "$home/.ssh" && chmod 0700 "$home/.ssh"
printf '%s\n' 'ssh-ed25519 AAAA me' >>"$home/.ssh/authorized_keys"
chmod 0600 "$home/.ssh/authorized_keys"
chown -R 'capi':"$(id -gn 'capi')" "$home/.ssh"
`}},
		{Section: "users", File: &file{Path: sudoersFile, Content: []byte("capi ALL=(ALL) NOPASSWD:ALL\n"), Owner: "root", Group: "root", Mode: 0o440, Append: true}},
		{Section: "users", Script: &script{Text: "id -u 'plain' >/dev/null 2>&1 || useradd --create-home 'plain'\npasswd -l 'plain' >/dev/null\n"}},
	}
	if diff := cmp.Diff(want, doc.Steps, cmp.AllowUnexported(file{})); diff != "" {
		t.Errorf("users become shadow-utils calls (-want +got):\n%s", diff)
	}
}

func TestPasswordHashOfOneUser(t *testing.T) {
	for _, hash := range []string{`"$6$x:y"`, `"$6$x\nroot:y"`} {
		if _, err := parse([]byte("#cloud-config\nusers: [{name: a, hashed_passwd: "+hash+"}]\n"), metadata{}); err == nil {
			t.Errorf("the hash %s would be that of another user", hash)
		}
	}
}

func TestParseCompressed(t *testing.T) {
	doc, err := parse(zipped("#cloud-config\nruncmd: [a]\n"), metadata{})
	if err != nil || len(doc.Steps) != 1 {
		t.Errorf("user data may be gzipped as a whole: got %v, %v", doc, err)
	}
}

func TestParseRefuses(t *testing.T) {
	cases := map[string]struct{ in, says string }{
		"no header":           {"runcmd: [a]\n", `must begin with "#cloud-config"`},
		"script":              {"#!/bin/sh\n", "#!/bin/sh"},
		"header after jinja":  {"## template: jinja\nruncmd: [a]\n", "must begin with"},
		"YAML":                {"#cloud-config\na: [\n", "not valid YAML"},
		"list at the top":     {"#cloud-config\n- a\n", "must be a mapping"},
		"commands not a list": {"#cloud-config\nruncmd: a\n", "runcmd must be a list"},
		"command is a map":    {"#cloud-config\nruncmd: [{a: b}]\n", "runcmd[0]"},
		"word is a list":      {"#cloud-config\nbootcmd: [[a, [b]]]\n", "bootcmd[0]"},
		"relative path":       {"#cloud-config\nwrite_files: [{path: a}]\n", "not absolute"},
		"bad mode":            {"#cloud-config\nwrite_files: [{path: /a, permissions: 'rw'}]\n", "not an octal number"},
		"huge mode":           {"#cloud-config\nwrite_files: [{path: /a, permissions: '17777'}]\n", "not an octal number"},
		"encoding":            {"#cloud-config\nwrite_files: [{path: /a, content: x, encoding: rot13}]\n", "rot13"},
		"base64":              {"#cloud-config\nwrite_files: [{path: /a, content: '%', encoding: b64}]\n", "base64"},
		"gzip":                {"#cloud-config\nwrite_files: [{path: /a, content: x, encoding: gzip}]\n", "write_files[0]"},
		"broken gzip":         {"\x1f\x8bnonsense", "cannot be decompressed"},
		"nameless user":       {"#cloud-config\nusers: [{gecos: x}]\n", "users[0] has no name"},
		"sudo of two lines":   {"#cloud-config\nusers: [{name: a, sudo: \"x\\ny\"}]\n", "one line"},
		"template statement":  {"## template: jinja\n#cloud-config\n{% if x %}\n", "{% if x %}"},
		"template filter":     {"## template: jinja\n#cloud-config\n# {{ x | upper }}\n", "{{ x | upper }}"},
		"open placeholder":    {"## template: jinja\n#cloud-config\n# {{ x\n", `without "}}"`},
		"open raw":            {"## template: jinja\n#cloud-config\n# {% raw %}\n", "without {% endraw %}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := parse([]byte(tc.in), metadata{})
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("want an Invalid fault that says %q, got %v", tc.says, err)
			}
		})
	}
}

// What is wrong with YAML is said with its line, without repeating what is there: it may be a secret.
func TestInvalidYAML(t *testing.T) {
	for text, want := range map[string]string{
		"#cloud-config\nwrite_files:\n- path: /a\n content: hunter2\n": "the cloud-config is not valid YAML: line ",
		"## template: jinja\n#cloud-config\nruncmd: [hunter2\n":        "the cloud-config is not valid YAML: line ",
		"#cloud-config\nruncmd: *hunter2\n":                            "not valid YAML: unknown anchor … referenced",
		"#cloud-config\nruncmd: \"hunter2\n":                           "not valid YAML: line ",
		"#cloud-config\nruncmd:\n- a\n\tb: hunter2\n":                  "not valid YAML: line ",
	} {
		_, err := parse([]byte(text), metadata{})
		got := fault.UserMessage(err)
		if !strings.Contains(got, want) || strings.Contains(got, "hunter2") {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	first := func(text string) string { _, err := parse([]byte(text), metadata{}); return fault.UserMessage(err) }
	broken := "#cloud-config\nruncmd:\n- a: [\n- b\n"
	plain, template := first(broken), first("## template: jinja\n"+broken)
	if plain == template || !strings.Contains(plain, ": line ") || !strings.Contains(template, ": line ") {
		t.Errorf("the line of a template counts: got %q and %q", plain, template)
	}
}

// Commands are told apart only where each is complete: what is added between them would become a part of one otherwise.
func TestCommandsAreComplete(t *testing.T) {
	for reason, list := range map[string]string{
		"a quote that is closed later":     `["echo 'a", "b'"]`,
		"a document that follows":          `["cat <<EOF", "x", "EOF"]`,
		"a statement of several items":     `["if true; then", "a", "fi"]`,
		"a loop":                           `["for x in a b", "do echo $x; done"]`,
		"a line that goes on":              `["echo a \\", "b"]`,
		"a list that goes on":              `["true &&", "b"]`,
		"a pipe":                           `["true |", "b"]`,
		"a function":                       `["f() {", "a; }"]`,
		"a subshell":                       `["(a", "b)"]`,
		"what the shell does with failing": `["set -e", "b"]`,
	} {
		doc, err := parse([]byte("#cloud-config\nruncmd: "+list+"\n"), metadata{})
		if err != nil || len(doc.Steps) != 1 || doc.Steps[0].Script.Commands != nil {
			t.Errorf("%s: got %+v, %v", reason, doc.Steps, err)
		}
	}
	doc, err := parse([]byte("#cloud-config\nruncmd:\n- kubeadm join --config /run/x.yaml && echo success > /run/y\n- [echo, \"it's\"]\n- f=$(cat \"/a b\") || exit 1\n"+
		"- \"if [ -e /a ]; then\\n echo; fi\"\n- echo \"a && (b\"\n- null\n"), metadata{})
	if err != nil || len(doc.Steps) != 1 || len(doc.Steps[0].Script.Commands) != 6 {
		t.Errorf("got %+v, %v", doc.Steps[0].Script, err)
	}
}

// FuzzParse feeds arbitrary documents: whatever comes, an answer or an Invalid fault, never a panic.
func FuzzParse(f *testing.F) {
	f.Add("#cloud-config\nruncmd: [a, [b, c]]\n")
	f.Add("## template: jinja\n#cloud-config\nusers: [{name: a, groups: [b], sudo: [c]}]\n# {{ a.b }}{# c #}{% raw %}{% endraw %}")
	f.Add("#cloud-config\nwrite_files: [{path: /a, content: &x b, permissions: 0640}, {path: /b, content: *x}]\n")
	f.Add("#cloud-config\na: &a [*a]\nruncmd: *a\n")
	f.Fuzz(func(t *testing.T, in string) {
		if _, err := parse([]byte(in), metadata{}); err != nil && fault.KindOf(err) != fault.Invalid {
			t.Errorf("want an Invalid fault, got %v", err)
		}
	})
}
