package redact_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/redact"
)

var key = "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat("A", 64) + "\nAAAA\n-----END RSA PRIVATE KEY-----"

// What a script prints lands in a condition, which more people read than may read Secrets.
func TestTail(t *testing.T) {
	for name, tc := range map[string]struct{ log, want string }{
		"plain":              {"+ kubeadm join\nerror: no route to host", "+ kubeadm join\nerror: no route to host"},
		"bootstrap token":    {"--token abcdef.0123456789abcdef x", "--token *** x"},
		"certificate key":    {strings.Repeat("0a", 32), "***"},
		"private key":        {"a\n" + key + "\nb", "a\n***\nb"},
		"the end of a key":   {strings.Repeat("A", 64) + "\nb", "***\nb"},
		"a key that is cut":  {"a\n" + key[:60], "a\n***"},
		"web token":          {"curl -H eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJhIn0.c2ln x", "curl -H *** x"},
		"password's hash":    {"usermod -p '$6$salt$Zm9vYmFyYmF6/.' x", "usermod -p '***' x"},
		"control characters": {"a\x1b]31mb\x00", "a]31mb"},
		"colors":             {"\x1b[0;37mCGROUPS_CPU\x1b[0m: \x1b[0;32menabled\x1b[0m", "CGROUPS_CPU: enabled"},
		"colors of 8 bits":   {"\u009b31ma\u009b0m \u0085b", "a b"},
		"8 bits in a secret": {"--token abcdef\u009b0m.0123456789abcdef", "--token ***"},
		"public hash":        {"sha256:" + strings.Repeat("0a", 32) + " " + strings.Repeat("0b", 32), "sha256:" + strings.Repeat("0a", 32) + " ***"},
		"colors in a secret": {"--token abcdef\x1b[0m.0123456789abcdef", "--token ***"},
	} {
		if got := redact.Tail(tc.log, 4096); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// A secret that a name says to be one is masked whatever it looks like, and the name stays.
func TestTailNamed(t *testing.T) {
	for name, tc := range map[string]struct{ log, want string }{
		"variable":                {"+ PASSWORD=hunter2 run", "+ PASSWORD=*** run"},
		"variable with a prefix":  {"+ DB_PASSWORD=hunter2 run", "+ DB_PASSWORD=*** run"},
		"prefix without a sign":   {"PGPASSWORD=hunter2 psql", "PGPASSWORD=*** psql"},
		"numbered variable":       {"export PASSWORD_2=hunter2", "export PASSWORD_2=***"},
		"access key":              {"AWS_SECRET_ACCESS_KEY=wJalr/XUt+K run", "AWS_SECRET_ACCESS_KEY=*** run"},
		"other names":             {"GPG_PASSPHRASE=a DB_PWD=b GIT_CREDENTIALS=c", "GPG_PASSPHRASE=*** DB_PWD=*** GIT_CREDENTIALS=***"},
		"value in quotes":         {"+ DB_PASSWORD='hunter 2' run", "+ DB_PASSWORD=*** run"},
		"quotes in the value":     {`+ DB_PASSWORD="hunter\" 2" run`, "+ DB_PASSWORD=*** run"},
		"quotes that do not end":  {"DB_PASSWORD='hunter 2\nrun", "DB_PASSWORD=***\nrun"},
		"quotes within":           {`DB_PASSWORD=hun"ter"2 run`, "DB_PASSWORD=*** run"},
		"field in YAML":           {`password: "hunter2" # x`, `password: *** # x`},
		"field in JSON":           {`{"clientSecret": "hunter2", "a": 1}`, `{"clientSecret": ***, "a": 1}`},
		"JSON in a string":        {`err="{\"password\":\"hunter 2\",\"a\":1}"`, `err="{\"password\":***,\"a\":1}"`},
		"OAuth":                   {"client_secret=hunter2&grant=x", "client_secret=***"},
		"flag":                    {"+ login --password hunter2 x", "+ login --password *** x"},
		"flag with a sign":        {"+ login --token=hunter2 x", "+ login --token=*** x"},
		"flag with a prefix":      {"--tls-bootstrap-token hunter2 x", "--tls-bootstrap-token *** x"},
		"flag with one dash":      {"mysql -password hunter2", "mysql -password ***"},
		"flags as JSON":           {`["run","--password","hunter2","x"]`, `["run","--password",***,"x"]`},
		"flags that Go quotes":    {`["run" "--password" "hunter2" "x"]`, `["run" "--password" *** "x"]`},
		"header":                  {"> x-api-key: hunter2", "> x-api-key: ***"},
		"header of a login":       {"> Authorization: Basic dXNlcjpodW50ZXIy", "> Authorization: Basic ***"},
		"header in an argument":   {"curl -H 'Authorization: Bearer hunter2' https://host/", "curl -H 'Authorization: Bearer ***' https://host/"},
		"header without a scheme": {"authorization: hunter2 x", "authorization: *** x"},
		"header with parameters":  {`Proxy-Authorization: Digest username="u", response="r"`, "Proxy-Authorization: Digest ***"},
		"cookie":                  {"< Set-Cookie: id=hunter2; Path=/", "< Set-Cookie: ***"},
		"bearer without a header": {"with bearer dXNlcjpodW50ZXIyOg==", "with bearer ***"},
		"URL":                     {"git clone https://user:hunter2@host/x", "git clone https://user:***@host/x"},
		"URL, @ in the password":  {"https://user:hunter@2@host/x", "https://user:***@host/x"},
		"URL, token alone":        {"https://hunter2@host/x", "https://***@host/x"},
		"URL with a query":        {"https://host/x?a=1&access_token=hunter2", "https://host/x?a=1&access_token=***"},
		"after a path":            {"/etc/app/password=hunter2", "/etc/app/password=***"},
		"short names":             {"export DB_PASS=hunter2 PSK=hunter2 psk=hunter2 HTTP_AUTH=hunter2", "export DB_PASS=*** PSK=*** psk=*** HTTP_AUTH=***"},
		"other words":             {"pgpass: hunter2", "pgpass: ***"},
		"passcode":                {"passcode=hunter2", "passcode=***"},
		"mysql":                   {"mysql -uroot -phunter2xyz db", "mysql -uroot -p*** db"},
		"sshpass":                 {"sshpass -p hunter2xyz ssh x", "sshpass -p *** ssh x"},
		"docker login":            {"docker login -u me -p hunter2xyz r", "docker login -u me -p *** r"},
		"curl":                    {"curl -u admin:hunter2xyz https://x", "curl -u admin:*** https://x"},
		"docker configuration":    {`{"auths":{"r":{"auth":"dXNlcjpodW50ZXIy"}}}`, `{"auths":{"r":{"auth":***}}}`},
		"GitHub":                  {"clone ghp_0123456789abcdefghij", "clone ***"},
		"Slack":                   {"xoxb-0123456789-abcdef", "***"},
		"signature of Amazon":     {"https://h/x?X-Amz-Signature=0123abcd", "https://h/x?X-Amz-Signature=***"},
		"signature of Azure":      {"https://h/x?sv=1&sig=hunter2%3D", "https://h/x?sv=1&sig=***"},
		"in the middle of a word": {"--set=db.password=hunter2", "--set=db.password=***"},
	} {
		if got := redact.Tail(tc.log, 4096); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// A text that contains a mask, or begins a value with one, is masked as every other text. Without a secret it stays as it
// is.
func TestMask(t *testing.T) {
	for name, tc := range map[string]struct {
		text, want string
		found      bool
	}{
		"plain":                   {" two lines\n\n", " two lines\n\n", false},
		"masked":                  {"password: ***", "password: ***", false},
		"a mask before a secret":  {"password: ***hunter2", "password: ***", true},
		"a mask within a secret":  {"password=hunter***2 x", "password=*** x", true},
		"a mask and a secret":     {"*** password: hunter2\n***", "*** password: ***\n***", true},
		"masks of another length": {"token=****", "token=***", true},
		"a script":                {"echo 1\nDB_PASSWORD=hunter2\n", "echo 1\nDB_PASSWORD=***\n", true},
		"a hidden secret":         {"pass\x00word: hunter2", "password: ***", true},
		"control characters":      {"a\x00b", "a\x00b", false},
		"in a quoted string":      {`{"password": "***hunter2"}`, `{"password": ***}`, true},
		"a longer secret":         {"abcdef.0123456789abcdef " + strings.Repeat("x", 200), "*** " + strings.Repeat("x", 200), true},
	} {
		if got, found := redact.Mask(tc.text); got != tc.want || found != tc.found {
			t.Errorf("%s: %q, %t, want %q, %t", name, got, found, tc.want, tc.found)
		}
	}
}

// What is no secret stays: the message is there to find out what is wrong.
func TestTailReadable(t *testing.T) {
	for _, line := range []string{
		"password authentication failed for user \"postgres\"",
		"the token was refused",
		"tokens: 3",
		"passwords=3 secrets: 2",
		"cat: /run/secrets/token: No such file or directory",
		"stat /var/lib/app.password: permission denied",
		"ls: /etc/kubernetes/pki/sa.key: No such file or directory",
		"--token-auth-file=/etc/kubernetes/tokens.csv --tls-private-key-file=/etc/kubernetes/pki/apiserver.key",
		"--service-account-key-file=/etc/kubernetes/pki/sa.pub --token-ttl 24h",
		"AWS_ACCESS_KEY_ID=AKIAEXAMPLE",
		"+ DB_PASSWORD= run",
		"+ login --password --user x",
		"--authorization-mode=Node,RBAC",
		"https://172.31.0.2:6443/api/v1/namespaces/kube-public/configmaps/cluster-info?timeout=10s",
		"mail to admin@example.com about https://host:8443/x?user=a@b",
		"registry.k8s.io/kube-apiserver@sha256:0123",
		`[certs] Generating "sa" key and public key`,
		`[certs] Generating "apiserver-kubelet-client" certificate and key`,
		"[upload-certs] Storing the certificates in Secret \"kubeadm-certs\" in the \"kube-system\" Namespace",
		"[bootstrap-token] Configuring bootstrap tokens, cluster-info ConfigMap, RBAC Roles",
		"[bootstrap-token] Configured RBAC rules to allow the csrapprover controller automatically approve CSRs from a Node Bootstrap Token",
		"[kubelet-start] Writing kubelet configuration to file \"/var/lib/kubelet/config.yaml\"",
		"error execution phase preflight: couldn't validate the identity of the API Server: could not find a JWS signature in the cluster-info ConfigMap for token ID \"abcdef\"",
		"error downloading the secret: secrets \"kubeadm-certs\" is forbidden: User \"system:bootstrap:abcdef\" cannot get resource \"secrets\"",
	} {
		want := strings.ReplaceAll(line, "the secret: secrets", "the secret: ***") // of a sentence, a word is lost
		if got := redact.Tail(line, 4096); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A log is cut where nothing is cut in two: half a secret has no form, and is not found among those that are known.
func TestTailIsBounded(t *testing.T) {
	if got := redact.Tail(strings.Repeat("0123456789\n", 1000), 100); len(got) > 100 || !strings.HasPrefix(got, "0123456789\n") {
		t.Errorf("a long log is cut at a line; got %d bytes starting %q", len(got), got[:20])
	}
	if got := redact.Tail(strings.Repeat("x", 90)+" a b c", 20); got != "a b c" {
		t.Errorf("a long line is cut at a word; got %q", got)
	}
	if got := redact.Tail(strings.Repeat("x", 90), 20); got != "***" {
		t.Errorf("of a long word nothing is shown; got %q", got)
	}
	if got := redact.Tail("PASSWORD="+strings.Repeat("x ", 1<<20)+"\nend", 20); got != "end" {
		t.Errorf("of a huge log the end is shown; got %q", got)
	}
}

// What a machine was given is masked in what it printed.
func TestHide(t *testing.T) {
	for name, tc := range map[string]struct {
		log    string
		values []string
		want   string
	}{
		"nothing known":   {"a hunter2 b", nil, "a hunter2 b"},
		"everywhere":      {"hunter2 b:hunter2,\nxhunter2", []string{"hunter2"}, "*** b:***,\nx***"},
		"one in another":  {"a hunter2hunter3 b", []string{"hunter2", "hunter2hunter3"}, "a *** b"},
		"they overlap":    {"a abcdefgh b", []string{"abcdef", "cdefgh"}, "a *** b"},
		"with itself":     {"a xyzxyzxyzx b", []string{"xyzxyzx"}, "a *** b"},
		"too short":       {"a true b", []string{"", "true"}, "a true b"},
		"not in the log":  {"a b", []string{"hunter2"}, "a b"},
		"in an empty log": {"", []string{"hunter2"}, ""},
	} {
		if got := redact.MaskSecrets(tc.log, tc.values); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestNamed(t *testing.T) {
	text := `
export DB_PASSWORD="hunter 2" PGPASSWORD=$DB_PASSWORD
curl -H 'Authorization: Bearer hunter3hunter3' https://user:hunter4@host/ --token {{ token }}
password: short
tokens: 3
tokenFile: /etc/token
` + key
	got := redact.FindNamedSecrets(text)
	for _, value := range []string{"hunter 2", "hunter3hunter3", "hunter4", strings.Repeat("A", 64)} {
		if hidden := redact.MaskSecrets("x "+value+" y", got); hidden != "x *** y" {
			t.Errorf("%q is shown as %q; known are %q", value, hidden, got)
		}
	}
	for _, line := range []string{"$DB_PASSWORD", "/etc/token", "short", "-----BEGIN RSA PRIVATE KEY-----"} {
		if hidden := redact.MaskSecrets(line, got); hidden != line {
			t.Errorf("%q is shown as %q; known are %q", line, hidden, got)
		}
	}
}

func TestOpaque(t *testing.T) {
	text := "# a comment about something-unremarkable\n" +
		"server = https://registry.k8s.io/v2/kube-apiserver\nfile=/etc/kubernetes/pki2/ca.crt\napiVersion: kubeadm.k8s.io/v1beta4\n" +
		"id: \"0123456789abcdef0123\"\nkey='Zm9vYmFyYmF6cXV1eA=='\nshort1 3f2504e0-4f89-11d3-9a0c-0305e82c3301,x"
	want := []string{"0123456789abcdef0123", "Zm9vYmFyYmF6cXV1eA", "3f2504e0-4f89-11d3-9a0c-0305e82c3301"}
	if diff := cmp.Diff(want, redact.FindOpaqueWords(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Bootstrap data has the size of a Secret, a log what a node wants: neither takes long.
func BenchmarkNamed(b *testing.B) {
	text := strings.Repeat("- path: /etc/kubernetes/pki/ca.crt\n  content: Zm9vYmFyYmF6cXV1eA password: hunter2\n", 1<<20/90)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		redact.FindNamedSecrets(text)
	}
}

func BenchmarkTail(b *testing.B) {
	for _, part := range []string{"--password ", "password", "https://", "a:", "-----BEGIN PRIVATE KEY-----", "token: x "} {
		b.Run(part, func(b *testing.B) {
			log := strings.Repeat(strings.Repeat(part, 9)+"\n", 1<<17/len(part)/9)
			for b.Loop() {
				redact.Tail(log, 4096)
			}
		})
	}
}

// What people read who may not read the Secret: security S8. No form of a secret is known here, but what is ordinary text.
func TestPublic(t *testing.T) {
	for name, tc := range map[string]struct{ log, want string }{
		"variable":           {"export WHATEVER=hunter2xyz", "export WHATEVER=***"},
		"mysql":              {"mysql -uroot -phunter2xyz", "mysql *** ***"},
		"curl":               {"curl -u admin:hunter2xyz https://host/x", "curl -u *** https://host/x"},
		"docker":             {"docker login -p hunter2xyz", "docker login -p ***"},
		"flag":               {"run --whatever hunter --other", "run --whatever *** --other"},
		"flag with a sign":   {"run --whatever=hunter", "run --whatever=***"},
		"field":              {"pgpass: hunter", "pgpass: ***"},
		"field in JSON":      {`{"auths":{"r":{"auth":"dXNlcjpodW50ZXIy"}}}`, "***"},
		"a word alone":       {"hunter2xyz", "***"},
		"a token":            {"got xoxb-1-a and ghp_abc1", "got *** and ***"},
		"query":              {"GET https://h.example.com/x?X-Amz-Signature=0123abcd", "GET ***"},
		"shown by the shell": {"+ mysql -uroot -phunter db", "+ mysql …"},
		"shown, a variable":  {"+ DB=hunter mysql db", "+ mysql …"},
		"shown, only that":   {"++ DB=hunter", "++ ***"},
		"path with a token":  {"cat /run/0123456789abcdef0123/x: No such file", "cat *** No such file"},
		"other spaces":       {"a\u00a0hunter2xyz\u2028b", "a\u00a0***\u2028b"},
		"long word":          {strings.Repeat("abcde", 6), "***"},
	} {
		if got := redact.Public(tc.log, 4096); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
	// What people need to find out what is wrong.
	for _, line := range []string{
		"proxy configuration missing",
		"all done",
		"slipway: running runcmd",
		"slipway: runcmd ended with code 7",
		"error: no route to host",
		"cat: /run/secrets/token: No such file or directory",
		"/run/slipway/step-1.sh: line 3: kubeadm: command not found",
		"curl: (7) Failed to connect to proxy.example.com port 3128: Connection refused",
		"dial tcp 172.16.64.1:6443: connect: connection refused",
		"error execution phase wait-control-plane: failed while waiting for the control plane to start: [kube-scheduler check failed at https://127.0.0.1:10259/livez: Get \"https://127.0.0.1:10259/livez\": dial tcp 127.0.0.1:10259: connect: connection refused]",
		"error execution phase preflight: couldn't validate the identity of the API Server: cluster CA found in cluster-info ConfigMap is invalid: none of the public keys \"sha256:" + strings.Repeat("0a", 32) + "\" are pinned",
		"[preflight] Some fatal errors occurred:",
		"\t[ERROR CRI]: could not connect to the container runtime: failed to create new CRI runtime service: validate service connection: validate CRI v1 runtime API for endpoint \"unix:///var/run/containerd/containerd.sock\": rpc error: code = DeadlineExceeded",
		"\t[ERROR FileAvailable--etc-kubernetes-manifests-kube-scheduler.yaml]: /etc/kubernetes/manifests/kube-scheduler.yaml already exists",
		"\t[ERROR FileContent--proc-sys-net-ipv4-ip_forward]: /proc/sys/net/ipv4/ip_forward contents are not set to 1",
		"\t[ERROR DirAvailable--var-lib-etcd]: /var/lib/etcd is not empty",
		"\t[ERROR Port-10250]: Port 10250 is in use",
		"To see the stack trace of this error execute with --v=5 or higher",
		"E1128 21:00:00.000000     123 server.go:1] \"command failed\" err=\"failed to parse kubelet flag: unknown flag: --eviction-hardd\"",
		"tar: Exiting with failure status due to previous errors",
		"no space left on device",
		"timed out after 30s",
		"Kubernetes v1.36.3",
	} {
		want := strings.TrimSpace(line)
		if got := redact.Public(line, 4096); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
