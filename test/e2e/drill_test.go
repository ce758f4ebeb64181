package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
)

// TestRestoreDrill: a management cluster is lost, and comes back from a backup. With the host's data directory it finds what runs on the
// host, and nothing restarts; without, machines are created again, and a control plane whose data is gone says so. MV-12, OR-01.
func TestRestoreDrill(t *testing.T) {
	in := newInstallation(t)
	in.up()
	in.apply(quickstart(t, "drill", 1))
	in.run("create", "cluster", "crowd", "--class", "simulated", "--workers", "2")
	w := in.untilReady("drill", 1)
	in.untilReady("crowd", 2)
	untilContains(t, long, "Cluster Available", "True", func() string { return in.condition("cluster/drill", "Available") })
	w.kubectl("create", "configmap", "kept", "--from-literal=by=etcd")
	backup, key := in.backUp(t)
	before, containers, process := in.held(), in.containers(t), in.controlPlaneProcess(t, "default.drill")

	t.Run("the etcd of the management cluster", func(t *testing.T) {
		in := in.with(t)
		in.run("down")
		if err := os.RemoveAll(filepath.Join(in.dataDir, "etcd")); err != nil {
			t.Fatal(err)
		}
		in.up()
		if left := in.held(); strings.Contains(left, "machine") {
			t.Fatalf("nothing was lost: %s", left)
		}
		in.run("restore", backup, "--identity", key)
		w := in.untilReady("drill", 1)
		in.untilReady("crowd", 2)
		untilContains(t, long, "Cluster Available", "True", func() string { return in.condition("cluster/drill", "Available") })
		if after := in.held(); after != before {
			t.Errorf("there is\n%s\nand there was\n%s", after, before)
		}
		if got := in.containers(t); !slices.Equal(got, containers) {
			t.Errorf("containers %v were %v", got, containers)
		}
		if got := in.controlPlaneProcess(t, "default.drill"); got == process {
			t.Logf("the control plane went on as process %d", got)
		}
		if by := w.kubectl("get", "configmap", "kept", "-o", "jsonpath={.data.by}"); by != "etcd" {
			t.Errorf("the workload cluster has %q", by)
		}
	})
	t.Run("the whole data directory", func(t *testing.T) {
		in := in.with(t)
		in.run("down", "--delete")
		in.up()
		in.run("restore", backup, "--identity", key)
		in.untilReady("crowd", 2)
		untilContains(t, long, "the control plane whose data is gone", "its data is not in the data directory of this manager", func() string {
			return in.condition("hostedcontrolplane/drill", "Available")
		})
		untilContains(t, long, "a container of the machine", "True", func() string {
			return in.condition("localmachine/"+in.get("localmachines", "{.items[?(@.spec.backend.container)].metadata.name}"), "MachineProvisioned")
		})
		if after := in.held(); after != before {
			t.Errorf("there is\n%s\nand there was\n%s", after, before)
		}
		again := in.containers(t)
		if len(again) != 1 || slices.Equal(again, containers) {
			t.Errorf("containers %v, and %v before", again, containers)
		}
		in.kubectl("delete", "cluster", "drill", "crowd", "--wait=false")
		until(t, long, "Clusters left", "", func() string { return in.get("clusters", "{.items[*].metadata.name}") })
		if left := in.containers(t); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// backUp writes a backup beside the data directory, with its Secrets encrypted, and returns it and the file of the key.
func (in *installation) backUp(t *testing.T) (file, key string) {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, key = filepath.Join(dir, "backup.tar.gz"), filepath.Join(dir, "key.txt")
	if err := os.WriteFile(key, []byte(identity.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	in.run("backup", file, "--recipient", identity.Recipient().String())
	return file, key
}

// held is what may not change by a restore: which Machines there are, on which infrastructure, and whom their clusters trust.
func (in *installation) held() string {
	in.t.Helper()
	return strings.Join([]string{
		in.kubectl("get", "clusters,machinesets,machines,localmachines", "-o", "name"),
		in.kubectl("get", "machines", "-o", "jsonpath={.items[*].spec.providerID}"),
		in.get("secret/drill-ca", `{.data.tls\.crt}`), in.get("secret/crowd-ca", `{.data.tls\.crt}`),
	}, "\n")
}

// containers are those of the installation, by ID.
func (in *installation) containers(t *testing.T) []string {
	t.Helper()
	return docker(t, "ps", "--quiet", "--no-trunc", "--filter", "label=dev.slipway.instance="+in.instance())
}
