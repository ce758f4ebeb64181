package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipwayhq/slipway/internal/kubeadm/etcd"
)

// A control plane of three loses two nodes at once, so that etcd has no quorum: it says so, and is rebuilt from the one that is left, with what was
// written before. Nothing of the lost nodes is left, and the worker stays the one that it was.
//
// It takes minutes, too long for `make test`: `make test-kubeadm` runs it.
func TestKubeadmRecovery(t *testing.T) { // KC-19
	if os.Getenv("SLIPWAY_E2E_KUBEADM") == "" {
		t.Skip("make test-kubeadm runs this test")
	}
	in := newInstallation(t)
	in.up()
	in.lasts("create", "cluster", "tower", "--class", "kubeadm", "--control-planes", "3", "--workers", "1", "--subnet", freeNetwork(t)+"0.0/16")
	w := in.untilReady("tower", 4)
	in.healthyControlPlane(t)
	refused, err := in.try("recover", "controlplane", "tower", "--yes")
	if err == nil || !strings.Contains(refused+err.Error(), "has a quorum") {
		t.Errorf("a recovery of what has a quorum: %s %v", refused, err)
	}

	w.kubectl("create", "configmap", "kept", "--from-literal", "since=before")
	t.Run("a snapshot is taken of a member", func(t *testing.T) { takesSnapshot(t, in.with(t)) })
	worker := in.workerUID(w)
	t.Run("etcd raises the alarm that a disk is full", func(t *testing.T) { raisesAlarm(t, in.with(t), w.with(t)) })
	nodes := w.controlPlaneNodes()
	leader, _ := in.etcdLeader(t, w)
	lost := append([]string{leader}, slices.DeleteFunc(slices.Clone(nodes), func(name string) bool { return name == leader })...)[:2]
	t.Logf("nodes of the control plane %v, leader %s, lost %v", nodes, leader, lost)
	var containers []string
	for _, name := range lost {
		containers = append(containers, docker(t, "ps", "-q", "--no-trunc", "--filter", "label=dev.slipway.instance="+in.instance(), "--filter", "name="+name)...)
	}
	if len(containers) != 2 {
		t.Fatalf("containers of %v: %v", lost, containers)
	}
	docker(t, append([]string{"kill"}, containers...)...)
	began := time.Now()
	for _, condition := range []string{"Available", "EtcdClusterHealthy"} {
		untilContains(t, long, condition+" of the control plane", "Etcd has lost its quorum: 1 of 3 members left, 2 needed", func() string {
			return in.condition("kubeadmcontrolplane/tower", condition)
		})
	}
	t.Logf("said so %v after they were killed: %s", time.Since(began).Round(time.Second), in.condition("kubeadmcontrolplane/tower", "Available"))

	t.Log(in.lasts("recover", "controlplane", "tower", "--dry-run"))
	if got := in.machines(); len(got) != 4 {
		t.Errorf("Machines after --dry-run: %v", got)
	}
	began = time.Now()
	t.Log(in.lasts("recover", "controlplane", "tower", "--yes"))
	t.Logf("recovered after %v", time.Since(began).Round(time.Second))

	if got := w.kubectl("get", "configmap", "kept", "-o", "jsonpath={.data.since}"); got != "before" {
		t.Errorf("what was written before: %q", got)
	}
	in.healthyControlPlane(t)
	eventually(t, long, "the nodes", func() error {
		now := w.controlPlaneNodes()
		if len(now) != 3 || slices.Contains(now, lost[0]) || slices.Contains(now, lost[1]) || len(w.readyNodes()) != 4 {
			return fmt.Errorf("nodes %v, Ready %v\n%s", now, w.readyNodes(), in.picture("tower"))
		}
		return nil
	})
	if now := in.workerUID(w); now != worker {
		t.Errorf("the worker is another one: %s, before %s", now, worker)
	}
	for _, container := range containers {
		if left := docker(t, "ps", "-aq", "--no-trunc", "--filter", "id="+container); len(left) > 0 {
			t.Errorf("container %s of a lost node is left", container)
		}
	}
	if got := in.get("kubeadmcontrolplane/tower", `{.metadata.annotations.controlplane\.slipway\.dev/recover}`); got != "" {
		t.Errorf("the request is left: %s", got)
	}
	podsWork(t, w)
	t.Run("it goes back to a snapshot", func(t *testing.T) { goesBack(t, in.with(t), w.with(t)) })
	t.Run("the kubelet of the etcd leader stops", func(t *testing.T) { leaderKubeletStopped(t, in.with(t), w.with(t)) })
	t.Run("etcd is rebuilt by hand", func(t *testing.T) { rebuiltByHand(t, in.with(t), w.with(t)) })
	in.deletesTower(t)
}

// takesSnapshot takes a snapshot of the etcd that kubeadm runs, encrypted for the identity in a Secret.
func takesSnapshot(t *testing.T, in *installation) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	in.kubectl("create", "secret", "generic", "reader", "--from-literal", "identity="+identity.String())
	in.apply(fmt.Sprintf(`{"apiVersion": "controlplane.slipway.dev/v1alpha1", "kind": "EtcdSnapshotPolicy", "metadata": {"name": "nightly"},
		"spec": {"clusterName": "tower", "schedule": "0 2 1 1 *", "destination": {"folder": {}}, "encryption": {"recipients": [%q]}}}`, identity.Recipient()))
	out := in.run("snapshots", "take", "tower")
	var revision, size int64
	at := strings.Index(out, "is stored: ")
	if at < 0 {
		t.Fatalf("no snapshot: %s", out)
	}
	if n, err := fmt.Sscanf(out[at:], "is stored: revision %d, %d bytes", &revision, &size); n != 2 || revision < 100 || size < 1<<20 {
		t.Errorf("revision %d, %d bytes, %v: %s", revision, size, err, out)
	}
	t.Log(strings.TrimSpace(out))
	if listed := strings.TrimSpace(in.run("snapshots", "list")); !strings.HasSuffix(listed, "true") {
		t.Errorf("it is not encrypted:\n%s", listed)
	}
}

// goesBack restores a snapshot while there is a quorum: what was written since is gone, what was there is there, and watches see no old revision.
func goesBack(t *testing.T, in *installation, w workload) {
	worker := in.workerUID(w)
	words := strings.Fields(in.run("snapshots", "take", "tower"))
	at := slices.IndexFunc(words, func(word string) bool { return strings.HasPrefix(word, "tower-") })
	if at < 0 {
		t.Fatalf("no snapshot: %v", words)
	}
	name := words[at]
	// writes writes what the snapshot does not have, and returns its revision.
	writes := func() (n int64) {
		if _, err := fmt.Sscan(w.kubectl("create", "configmap", "since", "-o", "jsonpath={.metadata.resourceVersion}"), &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before, machines := writes(), in.machines()
	refused, err := in.try("restore", "controlplane", "tower", "--snapshot", name, "--yes")
	if err == nil || !strings.Contains(refused+err.Error(), "slipway recover controlplane tower --snapshot") {
		t.Errorf("the other verb: %s %v", refused, err)
	}
	t.Log(in.lasts("recover", "controlplane", "tower", "--snapshot", name, "--identity-secret", "reader", "--dry-run"))
	if now := in.machines(); !slices.Equal(now, machines) {
		t.Errorf("Machines after --dry-run: %v, before %v", now, machines)
	}
	began := time.Now()
	t.Log(in.lasts("recover", "controlplane", "tower", "--snapshot", name, "--identity-secret", "reader", "--yes"))
	t.Logf("restored after %v", time.Since(began).Round(time.Second))
	if got := w.kubectl("get", "configmap", "kept", "-o", "jsonpath={.data.since}"); got != "before" {
		t.Errorf("what was written before: %q", got)
	}
	if got := w.kubectl("get", "configmaps", "-o", "name"); strings.Contains(got, "since") {
		t.Errorf("what was written since: %s", got)
	}
	if now := writes(); now <= before+1e8 {
		t.Errorf("revision %d, before %d", now, before)
	}
	in.healthyControlPlane(t)
	if now := in.workerUID(w); now != worker {
		t.Errorf("the worker is another one: %s, before %s", now, worker)
	}
	if got := in.condition("kubeadmcontrolplane/tower", "Recovered"); !strings.HasPrefix(got, "True") || !strings.Contains(got, "from snapshot "+name) {
		t.Errorf("Recovered: %s", got)
	}
	eventually(t, long, "the nodes", func() error {
		if len(w.controlPlaneNodes()) != 3 || len(w.readyNodes()) != 4 {
			return fmt.Errorf("nodes %v, Ready %v\n%s", w.controlPlaneNodes(), w.readyNodes(), in.picture("tower"))
		}
		return nil
	})
	podsWork(t, w)
}

// raisesAlarm has a member of etcd raise the alarm NOSPACE: the conditions name it, and the Machine, until it is disarmed.
func raisesAlarm(t *testing.T, in *installation, w workload) {
	node, _ := in.etcdLeader(t, w)
	client := in.etcdClient(t, node)
	ctx, cancel := context.WithTimeout(t.Context(), 2*long)
	defer cancel()
	status, err := client.Status(ctx, client.Endpoints()[0])
	if err != nil {
		t.Fatal(err)
	}
	alarm := &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, MemberID: status.Header.MemberId, Alarm: pb.AlarmType_NOSPACE}
	if _, err := pb.NewMaintenanceClient(client.ActiveConnection()).Alarm(ctx, alarm); err != nil {
		t.Fatal(err)
	}
	untilContains(t, long, "the condition EtcdClusterHealthy", "NOSPACE", func() string { return in.condition("kubeadmcontrolplane/tower", "EtcdClusterHealthy") })
	if got := in.condition("kubeadmcontrolplane/tower", "EtcdClusterHealthy"); !strings.HasPrefix(got, "False") || !strings.Contains(got, node) {
		t.Errorf("the alarm of node %s: %s", node, got)
	}
	if _, err := client.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: status.Header.MemberId, Alarm: pb.AlarmType_NOSPACE}); err != nil {
		t.Fatal(err)
	}
	in.healthyControlPlane(t)
}

// leaderKubeletStopped stops the kubelet on the node of the etcd leader, whose containers run on. The health check finds that the Node is not ready,
// and another takes its place.
func leaderKubeletStopped(t *testing.T, in *installation, w workload) {
	in.checksNodes(t)
	leader, container := in.etcdLeader(t, w)
	t.Logf("the leader of etcd is node %s", leader)
	docker(t, "exec", container, "systemctl", "stop", "kubelet")
	began := time.Now()
	eventually(t, 2*long, "another node in its place", func() error {
		nodes := w.controlPlaneNodes()
		if slices.Contains(nodes, leader) || len(nodes) != 3 || len(w.readyNodes()) != 4 {
			return fmt.Errorf("nodes %v, Ready %v\n%s", nodes, w.readyNodes(), in.picture("tower"))
		}
		return nil
	})
	in.healthyControlPlane(t)
	t.Logf("replaced and healthy %v after it stopped", time.Since(began).Round(time.Second))
}

// rebuiltByHand loses two nodes once more. A person runs the program that the command prints on the survivor, as where the infrastructure
// provider does not know how; the command waits for it.
func rebuiltByHand(t *testing.T, in *installation, w workload) {
	nodes := w.controlPlaneNodes()
	survivor, lost := nodes[0], nodes[1:]
	machine := in.get("machines", `{.items[?(@.status.nodeRef.name=="`+survivor+`")].metadata.name}`)
	for _, name := range lost {
		docker(t, "kill", in.container(t, name))
	}
	untilContains(t, long, "Available of the control plane", "Etcd has lost its quorum: 1 of 3 members left, 2 needed", func() string {
		return in.condition("kubeadmcontrolplane/tower", "Available")
	})
	ctx, cancel := context.WithTimeout(t.Context(), 4*long)
	defer cancel()
	cmd := exec.CommandContext(ctx, in.binary, "recover", "controlplane", "tower", "--manual", "--survivor", machine, "--yes", "--data-dir", in.dataDir)
	printed, err := os.Create(filepath.Join(t.TempDir(), "program"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = printed.Close() }()
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = printed, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var program []byte
	eventually(t, 2*long, "the program", func() error {
		if program, err = os.ReadFile(printed.Name()); err == nil && len(program) == 0 {
			err = fmt.Errorf("not yet: %s", in.condition("kubeadmcontrolplane/tower", "Recovered"))
		}
		return err
	})
	node := exec.Command("docker", "exec", "-i", in.container(t, survivor), "bash", "-s")
	node.Stdin = bytes.NewReader(program)
	if out, err := node.CombinedOutput(); err != nil {
		t.Fatalf("the program: %v\n%s\n%s", err, out, program)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, said.String(), in.picture("tower"))
	}
	t.Log(said.String())
	in.healthyControlPlane(t)
	eventually(t, long, "the nodes", func() error {
		now := w.controlPlaneNodes()
		if len(now) != 3 || !slices.Contains(now, survivor) || slices.Contains(now, lost[0]) || slices.Contains(now, lost[1]) || len(w.readyNodes()) != 4 {
			return fmt.Errorf("nodes %v, Ready %v\n%s", now, w.readyNodes(), in.picture("tower"))
		}
		return nil
	})
	if got := w.kubectl("get", "configmap", "kept", "-o", "jsonpath={.data.since}"); got != "before" {
		t.Errorf("what was written before: %q", got)
	}
}

// workerUID is the UID of the Node of the worker.
func (in *installation) workerUID(w workload) string {
	return w.kubectl("get", "nodes", "-l", "!node-role.kubernetes.io/control-plane", "-o", "jsonpath={.items[*].metadata.uid}")
}

// etcdClient is a client of the member of a node.
func (in *installation) etcdClient(t *testing.T, node string) *clientv3.Client {
	t.Helper()
	secret := in.secret(t, "tower-etcd")
	config, err := etcd.ClientTLS(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey], time.Now())
	if err != nil {
		t.Fatal(err)
	}
	config.ServerName = node
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"https://" + in.address(t, in.container(t, node)) + ":2379"}, TLS: config, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}
