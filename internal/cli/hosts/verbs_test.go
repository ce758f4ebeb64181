package hosts

import (
	"bytes"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
	"github.com/slipwayhq/slipway/test/sshtest"
)

// The list has the reason of every host that cannot be used, also of one that a machine uses.
func TestList(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	host := func(name string, state infrav1.SSHHostState, reason, message string, used bool) infrav1.SSHHost {
		h := infrav1.SSHHost{ObjectMeta: metav1.ObjectMeta{Namespace: "hosts", Name: name}}
		h.Spec.Address, h.Status.State = "192.0.2.1", state
		since := metav1.NewTime(at.Add(-time.Hour))
		h.Status.StateSince = &since
		h.Status.Conditions = []metav1.Condition{{Type: infrav1.AvailableCondition, Status: "False", Reason: reason, Message: message}}
		if used {
			h.Status.Claim = &infrav1.SSHHostClaim{Namespace: "team-a", Name: "m", ClaimID: claimID}
			h.Status.Facts = infrav1.SSHHostFacts{CPUs: 4, MemoryMiB: 8192, OSImage: "Debian"}
		}
		return h
	}
	docker := host("docker", infrav1.SSHHostAvailable, "", "", false)
	docker.Status.Conditions = []metav1.Condition{{Type: infrav1.AvailableCondition, Status: "True"}, {Type: infrav1.BundleInstallableCondition, Status: "False", Message: "containerd is active on the host"}}
	rows := rowsOf([]infrav1.SSHHost{
		host("used", infrav1.SSHHostInUse, "InUse", "SSHMachine team-a/m uses the host", true), host("lost", infrav1.SSHHostUnreachable, "HostUnreachable", "Host 192.0.2.1 does not respond", true),
		host("foreign", infrav1.SSHHostQuarantined, "RecordOfAnotherMachine", "The host has the record of another", false),
		{ObjectMeta: metav1.ObjectMeta{Namespace: "hosts", Name: "new"}}, docker,
	})
	var out bytes.Buffer
	if err := printHosts(&out, at, rows, ""); err != nil {
		t.Fatal(err)
	}
	want := `NAMESPACE  NAME     ADDRESS    STATE        SINCE  MACHINE   CPUS  MEMORY    SYSTEM
hosts      docker   192.0.2.1  Available    60m    -         -     -         -
hosts      foreign  192.0.2.1  Quarantined  60m    -         -     -         -
hosts      lost     192.0.2.1  Unreachable  60m    team-a/m  4     8192 MiB  Debian
hosts      new                 Unknown      -      -         -     -         -
hosts      used     192.0.2.1  InUse        60m    team-a/m  4     8192 MiB  Debian

hosts/docker: containerd is active on the host

hosts/foreign: The host has the record of another

hosts/lost: Host 192.0.2.1 does not respond
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
	for text, empty := range map[string]string{
		"in namespace default; use -A": none("default", "", false), "with the labels rack=b; ": none("default", "rack=b", true),
	} {
		if !strings.Contains(empty, text) {
			t.Errorf("%q lacks %q", empty, text)
		}
	}
}

// checkWorld has the SSHHost of a machine.
func checkWorld(t *testing.T) (world, *infrav1.SSHHost) {
	t.Helper()
	w := newWorld(t, "")
	if err := addHosts(t.Context(), w.env, w.connection, adding{entries: []entry{w.entry(t)}, yes: true}); err != nil {
		t.Fatal(err)
	}
	host, err := getHost(t.Context(), w.connection, "h1")
	if err != nil {
		t.Fatal(err)
	}
	return w, host
}

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*sshtest.Server, *infrav1.SSHHost)
		want   string
		fails  bool
	}{
		"another key": {"both fingerprints and the remedy", func(s *sshtest.Server, _ *infrav1.SSHHost) { s.ReplaceHostKey(); s.Cut() }, "slipway hosts update --host-key", true},
		"login":       {"the key that was offered", func(s *sshtest.Server, _ *infrav1.SSHHost) { s.RefuseUsers(true); s.Cut() }, "authorized_keys", true},
		"used": {"a node fails checks for a fresh host", func(_ *sshtest.Server, h *infrav1.SSHHost) {
			h.Status.Claim = &infrav1.SSHHostClaim{Namespace: "n", Name: "m"}
		}, "reachable; it is used by SSHMachine n/m", false},
		"cleaned": {"the checklist of its last user", func(s *sshtest.Server, h *infrav1.SSHHost) {
			s.Answer("preflight", "")
			h.Status.LastCleaning = &infrav1.SSHHostCleaningRecord{ClaimID: claimID, Time: &metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, Verified: []string{"mounts", "files"}}
		}, "clean since 2026-01-02T03:04:05Z after claim " + claimID + ", verified: mounts, files", true},
		"failed check": {"nothing is reported as passed", func(s *sshtest.Server, _ *infrav1.SSHHost) {
			s.Handle("preflight", func(sshtest.Call) sshtest.Result { return sshtest.Result{Code: 1, Errors: "boom"} })
		}, "failed: ", true},
	} {
		w, host := checkWorld(t)
		tc.change(w.server, host)
		pool := remote.NewPool(remote.Limits{})
		result := check(t.Context(), w.connection, pool, host, false)
		pool.Close()
		var out bytes.Buffer
		if err := printChecks(&out, []checked{result}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), tc.want) || (failedChecks([]checked{result}) != nil) != tc.fails {
			t.Errorf("%s (%s):\n%s", name, tc.reason, &out)
		}
	}
}

func TestLogs(t *testing.T) {
	w, host := checkWorld(t)
	w.server.Answer("logs", "started\x1b[31m\n")
	pool := remote.NewPool(remote.Limits{})
	defer pool.Close()
	connected, err := connect(t.Context(), w.connection, pool, host)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := connected.Logs(t.Context(), "kubelet", 10); err != nil || !strings.Contains(string(text), "started") {
		t.Errorf("%q, %v", text, err)
	}
	w.server.Handle("logs", func(sshtest.Call) sshtest.Result { return sshtest.Result{Code: 1, Errors: "no unit"} })
	if _, err := connected.Logs(t.Context(), "kubelet", 10); fault.As(err) == nil || fault.As(err).Reason != "NoLogs" {
		t.Errorf("%v", err)
	}
	if _, err := connected.Logs(t.Context(), "; rm", 10); fault.As(err) == nil || fault.As(err).Reason != "InvalidUnit" {
		t.Errorf("%v", err)
	}
}

// A new key in a Secret that other hosts use changes their key, too, if the user confirms it. With --split it does not.
func TestUpdateOfASharedSecret(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, input string
		flags         updateFlags
		changed, own  bool // the shared Secret was changed, and the host has a Secret of its own
		fails         bool
	}{
		"confirmed":     {"the key of all is rotated", "y\n", updateFlags{}, true, false, false},
		"refused":       {"the key of the other host is valid still", "n\n", updateFlags{}, false, false, true},
		"not confirmed": {"nobody can answer", "", updateFlags{}, false, false, true},
		"yes":           {"without a prompt", "", updateFlags{yes: true}, true, false, false},
		"split":         {"only this host gets the key", "", updateFlags{split: true}, false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, host := checkWorld(t)
			w.env.In = strings.NewReader(tc.input)
			other := &infrav1.SSHHost{ObjectMeta: metav1.ObjectMeta{Namespace: "inventory", Name: "h2"}, Spec: host.Spec}
			other.Spec.Jump = &infrav1.SSHServer{Address: "192.0.2.9", CredentialsRef: host.Spec.CredentialsRef}
			shared := &corev1.Secret{}
			key := client.ObjectKey{Namespace: "inventory", Name: host.Spec.CredentialsRef.Name}
			if err := w.connection.Client.Get(t.Context(), key, shared); err != nil {
				t.Fatal(err)
			}
			shared.Data["ssh-privatekey"] = append(shared.Data["ssh-privatekey"], '\n') // it differs from the new key, although the server accepts only one
			for _, err := range []error{w.connection.Client.Create(t.Context(), other), w.connection.Client.Update(t.Context(), shared)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			before := string(shared.Data["ssh-privatekey"])
			tc.flags.keyFile = w.keyFile
			if err := tc.flags.run(t.Context(), w.env, w.connection, host); (err != nil) != tc.fails {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			for _, o := range []client.Object{host, shared} {
				if err := w.connection.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
					t.Fatal(err)
				}
			}
			if changed := string(shared.Data["ssh-privatekey"]) != before; changed != tc.changed || (host.Spec.CredentialsRef.Name != key.Name) != tc.own {
				t.Errorf("%s: the shared Secret was changed: %t; the host has Secret %s", tc.reason, changed, host.Spec.CredentialsRef.Name)
			}
			if text := w.errs.String(); !tc.own && !strings.Contains(text, "also has the credentials of SSHHost h2, the jump host of SSHHost h2") {
				t.Errorf("%s: the output:\n%s", tc.reason, text)
			}
			if !tc.own {
				return
			}
			own := &corev1.Secret{}
			if err := w.connection.Client.Get(t.Context(), client.ObjectKey{Namespace: "inventory", Name: host.Spec.CredentialsRef.Name}, own); err != nil || len(own.OwnerReferences) != 1 || len(own.Data["ssh-privatekey"]) == 0 {
				t.Errorf("%s: its own Secret: %+v, %v", tc.reason, own, err)
			}
		})
	}
}

// Another address of a host does not move the node on it.
func TestUpdateOfTheAddress(t *testing.T) {
	used := &infrav1.SSHHostClaim{Namespace: "n", Name: "m", ClaimID: claimID}
	for name, tc := range map[string]struct {
		reason      string
		claim       *infrav1.SSHHostClaim
		nodeAddress string // of the SSHHost
		flags       updateFlags
		want, fails string // node address, or the reason of the error
	}{
		"free":          {"its next node has the new address", nil, "", updateFlags{address: "192.0.2.99"}, "", ""},
		"in use":        {"the cluster knows the node by its address", used, "", updateFlags{address: "192.0.2.99"}, "127.0.0.1", ""},
		"behind a NAT":  {"the node has an address of its own", used, "10.0.0.1", updateFlags{address: "192.0.2.99"}, "10.0.0.1", ""},
		"corrected":     {"the operator knows better", used, "", updateFlags{nodeAddress: "10.0.0.1"}, "10.0.0.1", ""},
		"name":          {"a name is no address", nil, "", updateFlags{address: "h1.example"}, "", reasonUsage},
		"name, in use":  {"the node has an address", used, "", updateFlags{address: "h1.example"}, "127.0.0.1", ""},
		"name, address": {"the operator knows it", nil, "", updateFlags{address: "h1.example", nodeAddress: "10.0.0.1"}, "10.0.0.1", ""},
		"no address":    {"a name is no address", used, "", updateFlags{nodeAddress: "h1.example"}, "", reasonUsage},
	} {
		w, host := checkWorld(t)
		host.Spec.NodeAddress = tc.nodeAddress
		if err := w.connection.Client.Update(t.Context(), host); err != nil {
			t.Fatal(err)
		}
		host.Status.Claim = tc.claim
		tc.flags.noCheck = true
		err := tc.flags.run(t.Context(), w.env, w.connection, host)
		if f := fault.As(err); (f == nil) != (tc.fails == "") || f != nil && f.Reason != tc.fails {
			t.Errorf("%s: %v (%s)", name, err, tc.reason)
		}
		got, err := getHost(t.Context(), w.connection, "h1")
		if err != nil {
			t.Fatal(err)
		}
		if got.Spec.NodeAddress != tc.want {
			t.Errorf("%s: %q, want %q (%s)", name, got.Spec.NodeAddress, tc.want, tc.reason)
		}
	}
}

func TestUpdateUser(t *testing.T) {
	const always, never = infrav1.SSHSudoAlways, infrav1.SSHSudoNever
	for name, tc := range map[string]struct {
		reason string
		user   string
		sudo   infrav1.SSHSudo
		flags  updateFlags
		want   infrav1.SSHSudo
	}{
		"to root":       {"the default of the new user", "ops", always, updateFlags{user: "root"}, never},
		"from root":     {"the default of the new user", "root", never, updateFlags{user: "ops"}, always},
		"chosen":        {"the setting was chosen, and remains", "root", always, updateFlags{user: "toor"}, always},
		"without sudo":  {"another user with the rights of root, who has no sudo", "toor", never, updateFlags{user: "ops"}, never},
		"flag":          {"", "toor", never, updateFlags{user: "ops", sudo: true, isSudoSet: true}, always},
		"flag, no user": {"", "toor", always, updateFlags{isSudoSet: true}, never},
		"no user":       {"nothing changes", "toor", never, updateFlags{port: 23}, never},
	} {
		h := &infrav1.SSHHost{Spec: infrav1.SSHHostSpec{SSHServer: infrav1.SSHServer{Address: "192.0.2.1", User: tc.user}, Sudo: tc.sudo}}
		if err := tc.flags.apply(h, &corev1.Secret{}, ""); err != nil || h.Spec.Sudo != tc.want || tc.flags.user != "" && h.Spec.User != tc.flags.user {
			t.Errorf("%s: %v, sudo is %s, want %s (%s)", name, err, h.Spec.Sudo, tc.want, tc.reason)
		}
	}
}
