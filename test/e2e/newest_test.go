package e2e

import (
	"os"
	"strings"
	"testing"
)

// A real cluster is upgraded to the minor version after the included one, with its data, and one of that version is made. CP-04, TP-23
//
// The version is compiled for it, eleven minutes when nothing is cached, too long for `make test`: `make bench` runs it.
func TestNewestVersion(t *testing.T) {
	newest := os.Getenv("SLIPWAY_E2E_NEWEST")
	if newest == "" {
		t.Skip("make bench runs this test")
	}
	const included = "v1.36.3"
	in := newInstallation(t)
	in.up()
	in.lasts("versions", "add", newest, "--node-image")
	in.lasts("create", "cluster", "older", "--workers", "1", "--subnet", freeNetwork(t)+"0.0/16", "--set", "podSecurity=baseline")
	w := in.untilReady("older", 1)
	until(t, short, "the version of the node", included, w.kubelets)
	w.kubectl("create", "configmap", "kept", "--from-literal=since="+included)
	in.lasts("upgrade", "cluster", "older", "--to", newest, "--yes")
	until(t, long, "the version of the node", newest, w.kubelets)
	if got := w.kubectl("get", "configmap", "kept", "-o", "jsonpath={.data.since}"); got != included {
		t.Errorf("the data says %q", got)
	}
	if got := w.kubectl("version", "-o", "json"); !strings.Contains(got, `"gitVersion": "`+newest+`"`) {
		t.Errorf("the API server says %s", got)
	}
	podsWork(t, w)
	in.lasts("delete", "cluster", "older")

	in.lasts("create", "cluster", "newer", "--workers", "1", "--kubernetes-version", newest, "--subnet", freeNetwork(t)+"0.0/16", "--set", "podSecurity=baseline")
	w = in.untilReady("newer", 1)
	until(t, short, "the version of the node", newest, w.kubelets)
	podsWork(t, w)
	in.lasts("delete", "cluster", "newer")
	if left := in.leftovers(in.instance()); len(left) > 0 {
		t.Errorf("left on the host: %v", left)
	}
}
