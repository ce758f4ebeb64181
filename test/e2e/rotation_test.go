package e2e

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRotateAuthority replaces the authority of a cluster with a real node, whose MachineDeployment is of a topology: the verb is killed in the
// first phase and run again, a node is Ready all the while, and in the end what the old authority signed is refused.
func TestRotateAuthority(t *testing.T) { // CP-15
	in := newInstallation(t)
	in.up()
	in.run("create", "cluster", "demo", "--workers", "1", "--subnet", freeNetwork(t)+"0.0/16")
	old := in.untilReady("demo", 1)
	before := old.readyNodes()
	data := in.get("secret/demo-ca", "{.data.tls\\.crt}")
	t.Log(in.run("rotate", "authority", "demo", "--dry-run"))
	if in.get("secret/demo-ca", "{.data.tls\\.crt}") != data {
		t.Fatal("a dry run has changed the Secret")
	}

	watch, stop := context.WithCancel(t.Context())
	watched := make(chan error, 1)
	newest := filepath.Join(t.TempDir(), "kubeconfig")
	go func() { watched <- alwaysReady(watch, workload{in, newest}) }()

	first, kill := context.WithTimeout(t.Context(), long)
	killed := make(chan error, 1)
	go func() {
		_, err := in.within(first, "rotate", "authority", "demo", "--yes")
		killed <- err
	}()
	untilContains(t, long, "the first phase is in effect", `"inEffect":true`, func() string { return rotationOf(in) })
	kill()
	if err := <-killed; err == nil {
		t.Error("it was done before it was killed")
	}
	if got := rotationOf(in); !strings.Contains(got, "TrustBoth") {
		t.Errorf("it was killed too late: %s", got)
	}
	t.Log(in.lasts("rotate", "authority", "demo", "--yes"))

	stop()
	if err := <-watched; err != nil {
		t.Error(err)
	}
	if out, err := old.try("get", "nodes"); err == nil {
		t.Errorf("the old kubeconfig still works: %s", out)
	} else if !strings.Contains(err.Error(), "x509") {
		t.Errorf("the old kubeconfig is refused for another reason: %v", err)
	}
	w := in.untilReady("demo", 1)
	if after := w.readyNodes(); slices.Equal(after, before) {
		t.Errorf("node %v was not replaced", after)
	}
	if keys := in.get("secret/demo-ca", "{.data}"); strings.Count(keys, `":"`) != 2 {
		t.Errorf("the Secret keeps more than certificate and key")
	}
	for _, where := range [][]string{{"kube-public", "cluster-info"}, {"kube-system", "kube-root-ca.crt"}} {
		text := w.kubectl("-n", where[0], "get", "configmap", where[1], "-o", "jsonpath={.data}")
		if where[1] == "cluster-info" {
			_, text, _ = strings.Cut(text, "certificate-authority-data: ")
			text, _, _ = strings.Cut(text, `\n`)
			decoded, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				t.Fatal(err)
			}
			text = string(decoded)
		}
		if strings.Count(text, "BEGIN CERTIFICATE") != 1 {
			t.Errorf("ConfigMap %s trusts %s", where[1], text)
		}
	}
	eventually(t, long, "the API server reaches the kubelet", func() error {
		_, err := w.try("-n", "kube-system", "logs", "-l", "k8s-app=kube-proxy", "--tail", "1")
		return err
	})
	untilContains(t, long, "Cluster Available", "True", func() string { return in.condition("cluster/demo", "Available") })
}

// rotationOf is what Secret demo-ca says of its rotation.
func rotationOf(in *installation) string {
	out, err := in.try("kubectl", "get", "secret", "demo-ca", "-o", "jsonpath={.data.rotation}")
	if err != nil {
		return err.Error()
	}
	text, err := base64.StdEncoding.DecodeString(out)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// alwaysReady reads the nodes until the context ends, each time with the newest kubeconfig: whenever the API answers, one is Ready.
func alwaysReady(ctx context.Context, w workload) error {
	answers := 0
	for ctx.Err() == nil {
		time.Sleep(pause)
		access, err := w.in.try("get", "kubeconfig", "demo")
		if err != nil {
			continue
		}
		if err := os.WriteFile(w.kubeconfig, []byte(access), 0o600); err != nil {
			return err
		}
		nodes, err := w.try("get", "nodes", "--no-headers")
		switch {
		case err != nil: // the control plane restarts
		case !slices.ContainsFunc(strings.Split(nodes, "\n"), func(line string) bool { return slices.Contains(strings.Fields(line), "Ready") }):
			return errors.New("no node is Ready:\n" + nodes)
		default:
			answers++
		}
	}
	if answers < 3 {
		return errors.New("the API has hardly ever answered")
	}
	return nil
}
