package e2e

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// TestRotateEncryption replaces the keys that encrypt what a cluster has in etcd: the verb is killed and run again. Afterwards the control
// plane runs without the old keys, and all is readable: also what has not been among the encrypted resources any more.
func TestRotateEncryption(t *testing.T) { // CP-04
	in := newInstallation(t)
	in.up()
	in.run("create", "cluster", "vault", "--workers", "0", "--set", "encryption=true", "--subnet", freeNetwork(t)+"0.0/16")
	plane := in.get("cluster/vault", "hostedcontrolplane/{.spec.controlPlaneRef.name}")
	keys := func() string { return in.get(plane, "{.status.encryptionKeys}") }
	eventually(t, short, "keys in effect", func() error {
		if keys() == "" {
			return errors.New("none yet")
		}
		return nil
	})
	encrypted := func(patch string) {
		process := in.get(plane, "{.status.process.pid}")
		in.kubectl("patch", plane, "--type", "merge", "--patch", `{"spec": {"encryption": `+patch+`}}`)
		untilContains(t, short, "a restart", "other", func() string {
			if now := in.get(plane, "{.status.process.pid}"); now != "" && now != process && strings.HasPrefix(in.condition(plane, "Available"), "True") {
				return "other"
			}
			return process
		})
	}
	encrypted(`{"resources": ["configmaps"]}`)
	w := in.untilReady("vault", 0)
	w.kubectl("create", "secret", "generic", "word", "--from-literal", "is=open-sesame")
	w.kubectl("create", "configmap", "once", "--from-literal", "is=encrypted")
	encrypted(`{"resources": null}`)
	before := keys()

	first, kill := context.WithTimeout(t.Context(), long)
	defer kill()
	killed := make(chan error, 1)
	go func() {
		_, err := in.within(first, "rotate", "encryption", "vault", "--yes")
		killed <- err
	}()
	untilContains(t, short, "new keys before the old ones", "former-", func() string { return in.get("secret/vault-encryption", "{.data}") })
	kill()
	if err := <-killed; err == nil {
		t.Error("it was done before it was killed")
	}
	t.Log(in.run("rotate", "encryption", "vault", "--dry-run"))
	t.Log(in.run("rotate", "encryption", "vault", "--yes"))

	if data := in.get("secret/vault-encryption", "{.data}"); strings.Contains(data, "former-") {
		t.Error("the Secret keeps the old keys")
	}
	if after := keys(); after == "" || strings.Contains(after, ",") || after == before {
		t.Errorf("keys in effect: %s before, %s after", before, after)
	}
	eventually(t, short, "all Secrets and ConfigMaps are readable", func() error {
		_, err := w.try("get", "secrets,configmaps", "--all-namespaces")
		return err
	})
	for object, want := range map[string]string{"secret/word": "b3Blbi1zZXNhbWU=", "configmap/once": "encrypted"} {
		if got := w.kubectl("get", object, "-o", "jsonpath={.data.is}"); got != want {
			t.Errorf("%s: %q", object, got)
		}
	}
	if out, err := in.try("rotate", "encryption", "nothing"); err == nil {
		t.Errorf("of a cluster that does not exist: %s", out)
	}
}

// ownCredentials are in the kubeconfig of kubectl, and not the administrator's.
func ownCredentials(t *testing.T, in *installation, cluster string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	in = in.with(t)
	in.env = append(in.env, "KUBECONFIG="+file)
	in.run("get", "kubeconfig", cluster, "--merge")
	out := workload{in, file}.kubectl("auth", "whoami")
	if !strings.Contains(out, "slipway:personal:") || strings.Contains(out, "system:masters") {
		t.Errorf("who one is:\n%s", out)
	}
}
