package contract_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/sdk/contract"
)

func TestRemovedMachine(t *testing.T) { // MD-04
	for name, tc := range map[string]struct {
		status string
		want   bool
	}{
		"removed":           {`{conditions: [{type: Ready, status: "False", reason: NotReady}, {type: InstanceReady, status: "False", reason: MachineRemoved}]}`, true},
		"as v1beta1 has it": {`{v1beta2: {conditions: [{type: Ready, status: "False", reason: MachineRemoved}]}}`, true},
		"not known":         {`{conditions: [{type: Ready, status: Unknown, reason: MachineRemoved}]}`, false},
		"runs":              {`{conditions: [{type: Ready, status: "True", reason: Ready}]}`, false},
		"no conditions":     {`{conditions: {reason: MachineRemoved}}`, false},
		"a text":            {`{conditions: [MachineRemoved]}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := contract.InfraMachine(object(t, contract.V1Beta2, "status: "+tc.status)).Removed; got != tc.want {
				t.Errorf("removed: %v, want %v", got, tc.want)
			}
		})
	}
}

func TestUnreadable(t *testing.T) { // CT-07
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"too large":           {contract.InfraMachinePool(object(t, contract.V1Beta2, "status: {replicas: 3000000000}")).Replicas.Err(), "field status.replicas: want 32-bit integer, have number 3000000000"},
		"a fraction":          {contract.InfraMachinePool(object(t, contract.V1Beta2, "status: {replicas: 2.5}")).Replicas.Err(), "field status.replicas: want 32-bit integer, have number 2.5"},
		"a text":              {contract.InfraMachinePool(object(t, contract.V1Beta2, `status: {replicas: "2"}`)).Replicas.Err(), "field status.replicas: want 32-bit integer, have string"},
		"conditions: object":  {object(t, contract.V1Beta2, "status: {conditions: {Ready: false}}").Ready().Err(), "field status.conditions: want array, have object"},
		"conditions: older":   {object(t, contract.V1Beta1, "status: {v1beta2: {conditions: yes}}").Ready().Err(), "field status.v1beta2.conditions: want array, have bool"},
		"conditions: a text":  {object(t, contract.V1Beta2, "status: {conditions: [Ready]}").Ready().Err(), "field status.conditions: item 0 is not a condition"},
		"conditions: another": {object(t, contract.V1Beta2, `status: {conditions: [Broken, {type: Ready, status: "True"}]}`).Ready().Err(), ""},
		"conditions: none":    {object(t, contract.V1Beta2, "status: {}").Ready().Err(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := text(tc.err); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// Half an endpoint of an object that is done is named, and not ignored.
func TestHalfAnEndpoint(t *testing.T) { // CL-08, CL-09, CT-07
	for name, tc := range map[string]struct{ endpoint, done, want string }{
		"whole":        {"{host: h, port: 1}", "true", ""},
		"none":         {"{}", "true", ""},
		"empty":        {`{host: "", port: 0}`, "true", ""},
		"not done yet": {"{host: h}", "false", ""},
		"no port":      {"{host: h, port: 0}", "true", "field spec.controlPlaneEndpoint: want host and port, have no port"},
		"no host":      {"{port: 6443}", "true", "field spec.controlPlaneEndpoint: want host and port, have no host"},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(t, contract.V1Beta2, "spec: {controlPlaneEndpoint: "+tc.endpoint+"}\nstatus: {initialization: {provisioned: "+tc.done+", controlPlaneInitialized: "+tc.done+"}}")
			for _, err := range []error{contract.InfraCluster(o).NeedingEndpoint().Err(), contract.ControlPlane(o).NeedingEndpoint().Err()} {
				if got := text(err); got != tc.want {
					t.Errorf("got %q, want %q", got, tc.want)
				}
			}
			if contract.InfraCluster(o).Err() != nil {
				t.Error("a Cluster that has an endpoint does not need it")
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestFailedBootstrap(t *testing.T) { // KC-19
	for status, want := range map[string]bool{
		`{conditions: [{type: BootstrapExecSucceeded, status: "False", reason: BootstrapFailed}]}`: true,
		`{conditions: [{type: BootstrapExecSucceeded, status: Unknown, reason: BootstrapFailed}]}`: false,
		`{conditions: [{type: BootstrapExecSucceeded, status: "False", reason: MachineRemoved}]}`:  false,
		`{}`: false,
	} {
		if got := contract.InfraMachine(object(t, contract.V1Beta2, "status: "+status)).Failed; got != want {
			t.Errorf("%s: failed: %v, want %v", status, got, want)
		}
	}
}

func object(t testing.TB, version contract.Version, text string) contract.Object {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return contract.Object{Unstructured: u, Contract: version}
}

func TestResolve(t *testing.T) { // CL-03, CT-04
	cases := map[string]struct {
		reason   string
		labels   map[string]string
		contract contract.Version
		version  string
		fails    bool
	}{
		"last of the list":  {"the last version is the newest", map[string]string{"cluster.x-k8s.io/v1beta2": "v1alpha1_v1beta1"}, contract.V1Beta2, "v1beta1", false},
		"in another order":  {"the list need not be sorted", map[string]string{"cluster.x-k8s.io/v1beta2": "v1_v1alpha3_v1beta1"}, contract.V1Beta2, "v1", false},
		"newest contract":   {"v1beta2 wins", map[string]string{"cluster.x-k8s.io/v1beta1": "v1", "cluster.x-k8s.io/v1beta2": "v2"}, contract.V1Beta2, "v2", false},
		"old provider":      {"v1beta1 is still spoken", map[string]string{"cluster.x-k8s.io/v1beta1": "v1"}, contract.V1Beta1, "v1", false},
		"no label":          {"the error says which label is missing", nil, "", "", true},
		"unknown contracts": {"contracts from before v1beta1 are not spoken", map[string]string{"cluster.x-k8s.io/v1alpha4": "v1"}, "", "", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, v, err := contract.Resolve("foos.example.org", tc.labels)
			if c != tc.contract || v != tc.version || (err != nil) != tc.fails {
				t.Errorf("%s: got %q %q %v", tc.reason, c, v, err)
			}
		})
	}
}

func TestCRDName(t *testing.T) { // CT-05
	for kind, want := range map[string]string{
		"LocalMachine": "localmachines.g", "LocalMachinePool": "localmachinepools.g", "Proxy": "proxies.g", "GlobalInClusterIPPool": "globalinclusterippools.g",
	} {
		if got := contract.CRDName("g", kind); got != want {
			t.Errorf("%s: got %s, want %s", kind, got, want)
		}
	}
}

func TestInfraCluster(t *testing.T) { // IC-02, IC-03, IC-04
	yes := true
	v2 := contract.InfraCluster(object(t, contract.V1Beta2, `
spec: {controlPlaneEndpoint: {host: a.example, port: 6443}}
status: {ready: false, initialization: {provisioned: true}, failureDomains: [{name: z, controlPlane: true}]}`))
	v1 := contract.InfraCluster(object(t, contract.V1Beta1, `
spec: {controlPlaneEndpoint: {host: a.example, port: 6443}}
status: {ready: true, failureDomains: {z: {controlPlane: true}, a: {attributes: {rack: "1"}}}}`))
	for name, v := range map[string]contract.InfraClusterView{"v1beta2": v2, "v1beta1": v1} {
		if !v.Provisioned.Or(false) {
			t.Errorf("%s: not provisioned", name)
		}
		if got := v.ControlPlaneEndpoint.Or(contract.Endpoint{}); got != (contract.Endpoint{Host: "a.example", Port: 6443}) || !got.IsValid() {
			t.Errorf("%s: endpoint %v", name, got)
		}
	}
	if diff := cmp.Diff([]clusterv1.FailureDomain{{Name: "z", ControlPlane: &yes}}, v2.FailureDomains.Or(nil)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]clusterv1.FailureDomain{{Name: "a", Attributes: map[string]string{"rack": "1"}}, {Name: "z", ControlPlane: &yes}}, v1.FailureDomains.Or(nil)); diff != "" {
		t.Errorf("a map is sorted by name: %s", diff)
	}
}

func TestInfraMachine(t *testing.T) { // IM-02, IM-03, IM-04, IM-05, IM-12
	const text = `
spec: {providerID: "x://1", failureDomain: spec}
status: {ready: true, initialization: {provisioned: true}, failureDomain: status, interruptible: true, addresses: [{type: InternalIP, address: 10.0.0.1}]}`
	for version, domain := range map[contract.Version]string{contract.V1Beta2: "status", contract.V1Beta1: "spec"} {
		v := contract.InfraMachine(object(t, version, text))
		if got := v.FailureDomain.Or(""); got != domain || v.SpecFailureDomain.Or("") != "spec" {
			t.Errorf("%s: failure domain %q, of the spec %q", version, got, v.SpecFailureDomain.Or(""))
		}
		if !v.Provisioned.Or(false) || v.ProviderID.Or("") != "x://1" || !v.Interruptible.Or(false) || len(v.Addresses.Or(nil)) != 1 {
			t.Errorf("%s: %+v", version, v)
		}
	}
	bad := contract.InfraMachine(object(t, contract.V1Beta2, `spec: {providerID: [1]}`))
	if bad.ProviderID.Presence() != contract.Unreadable || bad.ProviderID.Err() == nil {
		t.Error("a provider ID that is not a string is unreadable, with an error")
	}
}

func TestInfraMachinePool(t *testing.T) { // MP-03, IP2-03, IP2-05, IP2-06, IP2-08
	cases := map[string]struct {
		text string
		want bool
	}{
		"v1beta2 field only": {`status: {initialization: {provisioned: true}}`, true},
		"legacy field only":  {`status: {ready: true}`, true},
		"they disagree":      {`status: {ready: true, initialization: {provisioned: false}}`, true},
		"neither":            {`status: {}`, false},
	}
	for name, tc := range cases {
		for _, version := range contract.Versions() {
			if got := contract.InfraMachinePool(object(t, version, tc.text)).Provisioned.Or(false); got != tc.want {
				t.Errorf("%s (%s): got %v", name, version, got)
			}
		}
	}
	v := contract.InfraMachinePool(object(t, contract.V1Beta2, `{spec: {providerIDList: [a, b]}, status: {replicas: 2, infrastructureMachineKind: M}}`))
	if len(v.ProviderIDList.Or(nil)) != 2 || v.Replicas.Or(0) != 2 || v.MachineKind.Or("") != "M" {
		t.Errorf("%+v", v)
	}
}

func TestBootstrapConfig(t *testing.T) { // BC-02, BC-03
	for version, text := range map[contract.Version]string{
		contract.V1Beta2: `status: {dataSecretName: s, initialization: {dataSecretCreated: true}}`,
		contract.V1Beta1: `status: {dataSecretName: s, ready: true}`,
	} {
		v := contract.BootstrapConfig(object(t, version, text))
		if !v.DataSecretCreated.Or(false) || v.DataSecretName.Or("") != "s" {
			t.Errorf("%s: %+v", version, v)
		}
	}
}

func TestControlPlane(t *testing.T) { // CP-02, CP-03, CP-04, CP-08, CP-10
	v2 := contract.ControlPlane(object(t, contract.V1Beta2, `
status: {initialization: {controlPlaneInitialized: true}, replicas: 3, availableReplicas: 2, upToDateReplicas: 1, versions: [{version: v1.35.0, replicas: 2}, {version: v1.36.0, replicas: 1}]}`))
	v1 := contract.ControlPlane(object(t, contract.V1Beta1, `
status: {initialized: true, replicas: 3, unavailableReplicas: 1, updatedReplicas: 1, version: v1.35.0, externalManagedControlPlane: true}`))
	for name, v := range map[string]contract.ControlPlaneView{"v1beta2": v2, "v1beta1": v1} {
		if !v.Initialized.Or(false) || v.AvailableReplicas.Or(-1) != 2 || v.UpToDateReplicas.Or(-1) != 1 {
			t.Errorf("%s: %+v", name, v)
		}
		if got := v.Versions.Or(nil); len(got) == 0 || got[0].Version != "v1.35.0" {
			t.Errorf("%s: versions %v", name, got)
		}
	}
	if !v1.ExternalManaged.Or(false) || v2.ExternalManaged.Or(false) {
		t.Error("external management")
	}
}

// A control plane of contract v1beta1 counts what is not available, Machines that do not exist yet among them.
func TestControlPlaneAvailable(t *testing.T) { // CL-25, CP-03
	for name, tc := range map[string]struct {
		reason, text string
		want         int32
	}{
		"scaling up":       {"two of three do not exist yet, and count as unavailable", `{spec: {replicas: 3}, status: {replicas: 1, unavailableReplicas: 2}}`, 1},
		"none yet":         {"all that are wanted are unavailable", `{spec: {replicas: 3}, status: {replicas: 1, unavailableReplicas: 3}}`, 0},
		"more than all":    {"never negative", `{spec: {replicas: 1}, status: {replicas: 1, unavailableReplicas: 3}}`, 0},
		"scaling down":     {"those that go are not wanted any more", `{spec: {replicas: 1}, status: {replicas: 3, unavailableReplicas: 0}}`, 1},
		"no spec.replicas": {"control planes without replicas count those there are", `{status: {replicas: 3, unavailableReplicas: 1}}`, 2},
		"nonsense":         {"a provider may report anything", `{spec: {replicas: 3}, status: {replicas: 3, unavailableReplicas: -2147483648}}`, 3},
		"both nonsense":    {"a provider may report anything", `{spec: {replicas: -4}, status: {unavailableReplicas: -2}}`, 0},
	} {
		if got := contract.ControlPlane(object(t, contract.V1Beta1, tc.text)).AvailableReplicas; got.Or(-99) != tc.want {
			t.Errorf("%s: %s: want %d, got %+v", name, tc.reason, tc.want, got)
		}
	}
	if f := contract.ControlPlane(object(t, contract.V1Beta1, `{spec: {replicas: 3}, status: {replicas: 1}}`)).AvailableReplicas; f.Presence() != contract.Missing {
		t.Errorf("nothing was counted: %+v", f)
	}
}

// What the API would refuse in the MachinePool that takes it over is unreadable, and says why.
func TestInfraMachinePoolNonsense(t *testing.T) {
	long := strings.Repeat("x", 600)
	for name, tc := range map[string]struct{ text, want string }{
		"negative replicas": {`status: {replicas: -3}`, "field status.replicas: want 0 or more, have -3"},
		"replicas":          {`status: {replicas: many}`, "field status.replicas: want 32-bit integer, have string"},
		"empty provider ID": {`spec: {providerIDList: [a, ""]}`, "field spec.providerIDList: item 1 is empty"},
		"long provider ID":  {`spec: {providerIDList: [` + long + `]}`, "field spec.providerIDList: item 0 has 600 characters, 512 at most are possible"},
		"too many":          {`spec: {providerIDList: [` + strings.Repeat("a,", 10001) + `]}`, "field spec.providerIDList: there are 10001 items, 10000 at most are possible"},
		"no list":           {`spec: {providerIDList: abc}`, "field spec.providerIDList: want array, have string"},
		"kind":              {`status: {infrastructureMachineKind: "no kind/at all"}`, `field status.infrastructureMachineKind: "no kind/at all" is not the name of a kind`},
		"long kind":         {`status: {infrastructureMachineKind: ` + long + `}`, "field status.infrastructureMachineKind: 600 characters are not the name of a kind"},
		"provisioned":       {`status: {initialization: {provisioned: "yes"}}`, "field status.initialization.provisioned: want bool, have string"},
		"ready":             {`status: {ready: "yes"}`, "field status.ready: want bool, have string"},
		"one will do":       {`status: {ready: true, initialization: {provisioned: "yes"}}`, ""},
		"nothing at all":    {`{}`, ""},
		"all well":          {`{spec: {providerIDList: [a, b]}, status: {replicas: 0, ready: false, infrastructureMachineKind: Foo}}`, ""},
	} {
		got := ""
		if err := contract.InfraMachinePool(object(t, contract.V1Beta2, tc.text)).Err(); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%s: want %q, got %q", name, tc.want, got)
		}
	}
	for name, tc := range map[string]struct{ text, want string }{
		"name":    {`status: {dataSecretName: true}`, "field status.dataSecretName: want string, have bool"},
		"length":  {`status: {dataSecretName: ` + long + `}`, "field status.dataSecretName: 600 characters are not the name of a Secret"},
		"created": {`status: {initialization: {dataSecretCreated: "yes"}}`, "field status.initialization.dataSecretCreated: want bool, have string"},
		"well":    {`status: {dataSecretName: s, initialization: {dataSecretCreated: true}}`, ""},
	} {
		got := ""
		if err := contract.BootstrapConfig(object(t, contract.V1Beta2, tc.text)).Err(); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("bootstrap %s: want %q, got %q", name, tc.want, got)
		}
	}
}

func TestCondition(t *testing.T) { // CT-07, CT-12
	cases := map[string]struct {
		reason, text string
		presence     contract.Presence
		want         metav1.Condition
	}{
		"v1beta2": {"as it is", `status: {conditions: [{type: Ready, status: "False", reason: NoQuota, message: ask, observedGeneration: 4}]}`, contract.Found,
			metav1.Condition{Type: "Ready", Status: "False", Reason: "NoQuota", Message: "ask", ObservedGeneration: 4}},
		"severity":        {"v1beta1 conditions are read", `status: {conditions: [{type: Ready, status: "True", severity: Info}]}`, contract.Found, metav1.Condition{Type: "Ready", Status: "True", Reason: "ReportedTrue"}},
		"transition":      {"a provider on its way may have both lists", `status: {v1beta2: {conditions: [{type: Ready, status: "True", reason: Ready}]}}`, contract.Found, metav1.Condition{Type: "Ready", Status: "True", Reason: "Ready"}},
		"missing":         {"not there", `status: {conditions: [{type: Other, status: "True"}]}`, contract.Missing, metav1.Condition{}},
		"invalid status":  {"a status outside the three is invalid", `status: {conditions: [{type: Ready, status: "yes"}]}`, contract.Unreadable, metav1.Condition{}},
		"not even a list": {"anything may be there", `status: {conditions: nonsense}`, contract.Unreadable, metav1.Condition{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := object(t, contract.V1Beta2, tc.text).Ready()
			got, _ := f.Get()
			if f.Presence() != tc.presence {
				t.Fatalf("%s: presence %v", tc.reason, f.Presence())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}

func TestFailure(t *testing.T) { // CT-08
	const text = `status: {failureReason: Broken, failureMessage: "it broke"}`
	if got := object(t, contract.V1Beta1, text).Failure(); got != (contract.Failure{Reason: "Broken", Message: "it broke"}) {
		t.Errorf("v1beta1: %v", got)
	}
	if got := object(t, contract.V1Beta2, text).Failure(); got != (contract.Failure{}) {
		t.Errorf("v1beta2 has no terminal failures: %v", got)
	}
	for _, version := range contract.Versions() { // MP-13
		if got := contract.InfraMachinePool(object(t, version, text)).ReportedFailure(); got != (contract.Failure{Reason: "Broken", Message: "it broke"}) {
			t.Errorf("pools report failures whatever their contract is: %s: %v", version, got)
		}
	}
}
