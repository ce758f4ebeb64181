package cluster

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/test/sshtest"
)

func sshMachineNamed(name, hostname string) infrav1.SSHMachine {
	m := infrav1.SSHMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}}
	m.Spec.ClaimID = strings.Repeat(name[:1], 26)
	m.Status.HostRef = &infrav1.SSHHostReference{Namespace: "hosts", Name: "h"}
	m.Status.Addresses = clusterv1.MachineAddresses{{Type: clusterv1.MachineHostName, Address: hostname}, {Type: clusterv1.MachineInternalIP, Address: "192.0.2.1"}}
	return m
}

func TestSSHMachineByNode(t *testing.T) {
	all := []infrav1.SSHMachine{sshMachineNamed("a-1", "rack1"), sshMachineNamed("b-1", "rack2")}
	for name, want := range map[string]string{"a-1": "a-1", "rack2": "b-1", "a": "a-1", "192.0.2.1": "", "c": ""} {
		m, err := (logsFlags{}).sshMachine(all, name)
		if (err == nil) != (want != "") || err == nil && m.Name != want {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

// The journal of a host is read with the operator's credentials, and only if the host belongs to the machine: tenants can write the
// status of an SSHMachine.
func TestLogsOfAHost(t *testing.T) {
	server := sshtest.Start(t)
	server.Handle("logs", func(c sshtest.Call) sshtest.Result {
		return sshtest.Result{Output: "log of " + c.Parameters["UNIT"][0] + ", " + c.Parameters["LINES"][0] + " lines\x1b[2J\n"}
	})
	scheme, err := management.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	to := server.Target()
	h := &infrav1.SSHHost{ObjectMeta: metav1.ObjectMeta{Namespace: "hosts", Name: "h"}}
	h.Spec.Address, h.Spec.Port, h.Spec.User, h.Spec.HostKeys, h.Spec.CredentialsRef.Name = to.Address, int32(to.Port), to.User, to.HostKeys, "key"
	mine := sshMachineNamed("a-1", "rack1")
	h.Status.Claim = &infrav1.SSHHostClaim{Namespace: "team-a", Name: "a-1", ClaimID: mine.Spec.ClaimID}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "hosts", Name: "key"}, Data: map[string][]byte{"ssh-privatekey": to.PrivateKey}}
	c := &management.Connection{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(h, secret).Build()}

	thief, waiting := sshMachineNamed("b-1", "rack1"), sshMachineNamed("c-1", "")
	waiting.Status.HostRef = nil
	for name, tc := range map[string]struct {
		reason  string
		machine infrav1.SSHMachine
		flags   logsFlags
		want    string
		fails   bool
	}{
		"default":   {"the kubelet is of most interest", mine, logsFlags{lines: 100}, "log of kubelet, 100 lines", false},
		"bootstrap": {"the whole output", mine, logsFlags{lines: -1, bootstrap: true}, "log of bootstrap, 10000 lines", false},
		"units":     {"one after the other", mine, logsFlags{lines: 5, units: []string{"kubelet", "containerd"}}, "==> containerd <==\nlog of containerd, 5 lines", false},
		"follow":    {"the connection is for one answer", mine, logsFlags{lines: 5, follow: true}, "cannot be followed", true},
		"thief":     {"its status names the host of another machine", thief, logsFlags{lines: 5}, "does not have the claim", true},
		"no host":   {"it waits for one", waiting, logsFlags{lines: 5}, "has no host yet", true},
	} {
		var out bytes.Buffer
		err := tc.flags.hostLog(t.Context(), term.Env{Out: &out}, c, &tc.machine)
		got := out.String()
		if err != nil {
			got = fault.UserMessage(err)
		}
		if (err != nil) != tc.fails || !strings.Contains(got, tc.want) || strings.Contains(got, "\x1b") {
			t.Errorf("%s: %q, %v, want %q (%s)", name, got, err, tc.want, tc.reason)
		}
	}
}
