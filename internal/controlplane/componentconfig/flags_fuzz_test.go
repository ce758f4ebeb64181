package componentconfig

import (
	"strings"
	"testing"
)

// FuzzProblem: no value of a flag that a tenant may set is a path, an address or more than one line.
func FuzzProblem(f *testing.F) {
	for _, c := range []Component{APIServer, ControllerManager, Scheduler, Etcd} {
		names, _ := FlagNames(c)
		for _, name := range names {
			f.Add(string(c), name, "1")
		}
	}
	f.Add("kube-apiserver", "etcd-servers-overrides", "/secrets#unix:///x")
	f.Fuzz(func(t *testing.T, component, name, value string) {
		if FlagProblem(Component(component), name, value) != "" {
			return
		}
		if strings.ContainsAny(value, "\n\x00") || strings.Contains(value, "://") || strings.HasPrefix(value, "/") || strings.Contains(value, "..") {
			t.Errorf("%s takes --%s=%q", component, name, value)
		}
	})
}
