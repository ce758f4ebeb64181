package providerupgrade_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/clusterctl/install"
	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/clusterctl/providerupgrade"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providerset"
)

func record(t provider.Type, name, version string) provider.Installed {
	return provider.Installed{Namespace: name + "-system", Name: name, Type: t, Version: version}
}

// releases answers with the latest version by label and contract.
func releases(latest map[string]string) providerupgrade.LatestVersionFunc {
	return func(_ context.Context, p provider.Installed, contract string) (string, error) {
		return latest[p.Label()+" "+contract], nil
	}
}

// CX-11: for the contract of the core, and for each later one, the newest versions.
func TestOffers(t *testing.T) {
	installed := []provider.Installed{record(provider.Core, "cluster-api", "v1.10.4"), record(provider.Infrastructure, "acme", "v2.0.0")}
	latest := releases(map[string]string{
		"cluster-api v1beta1": "v1.10.9", "infrastructure-acme v1beta1": "v2.0.0",
		"cluster-api v1beta2": "v1.14.1", "infrastructure-acme v1beta2": "v2.1.0",
	})
	got, err := providerupgrade.AvailableUpgrades(t.Context(), installed, "v1beta1", latest)
	if err != nil {
		t.Fatal(err)
	}
	want := []providerupgrade.Upgrades{
		{Contract: "v1beta1", Upgrades: true, Providers: []providerupgrade.Candidate{{Installed: installed[0], NextVersion: "v1.10.9"}, {Installed: installed[1], NextVersion: ""}}},
		{Contract: "v1beta2", Upgrades: true, Providers: []providerupgrade.Candidate{{Installed: installed[0], NextVersion: "v1.14.1"}, {Installed: installed[1], NextVersion: "v2.1.0"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err = providerupgrade.AvailableUpgrades(t.Context(), installed, "v1beta2", latest); err != nil || len(got) != 1 {
		t.Errorf("of the contract of this build: %v, %v", got, err)
	}
}

// unreadable is like releases, but for one provider whose releases cannot be read.
func unreadable(label string, others providerupgrade.LatestVersionFunc) providerupgrade.LatestVersionFunc {
	return func(ctx context.Context, p provider.Installed, contract string) (string, error) {
		if p.Label() == label {
			return "", fault.New(fault.Gone, "UnknownProvider", "add it to providers")
		}
		return others(ctx, p, contract)
	}
}

// CX-11, CX-12: a provider whose releases cannot be read, for example because it is not in the configuration, keeps none of the others from their
// upgrade, and is not passed over in silence.
func TestOneProviderIsUnreadable(t *testing.T) {
	installed := []provider.Installed{record(provider.Core, "cluster-api", "v1.14.0"), record(provider.Infrastructure, "acme", "v2.0.0"), record(provider.Infrastructure, "broken", "v1.0.0")}
	latest := unreadable("infrastructure-broken", releases(map[string]string{"cluster-api v1beta2": "v1.14.1", "infrastructure-acme v1beta2": "v2.1.0"}))
	offers, err := providerupgrade.AvailableUpgrades(t.Context(), installed, "v1beta2", latest)
	if err != nil {
		t.Fatal(err)
	}
	want := []providerupgrade.Upgrades{{Contract: "v1beta2", Upgrades: true, Providers: []providerupgrade.Candidate{
		{Installed: installed[0], NextVersion: "v1.14.1"}, {Installed: installed[1], NextVersion: "v2.1.0"}, {Installed: installed[2], Unknown: "add it to providers"},
	}}}
	if diff := cmp.Diff(want, offers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	cluster := install.ManagementCluster{ClusterState: install.ClusterState{Installed: installed, Contract: "v1beta2"}}
	targets, notes, err := providerupgrade.ChooseUpgrades(t.Context(), providerupgrade.UpgradeRequest{Contract: "v1beta2"}, cluster, latest)
	if err != nil || len(targets) != 2 || len(notes) != 1 || !strings.Contains(notes[0], "infrastructure-broken remains at version v1.0.0, because its releases cannot be read: add it to providers") {
		t.Errorf("targets %v, notes %q, %v", targets, notes, err)
	}
	core := providerupgrade.Change{From: installed[0], To: install.LoadedProvider{Components: &repository.Components{}, Contract: "v1beta2"}}
	for before, refused := range map[string]bool{"v1beta2": false, "v1beta1": true} {
		err := providerupgrade.CheckUpgrade([]providerupgrade.Change{core}, providerupgrade.OtherContracts{"infrastructure-broken": ""}, before)
		if got := err != nil && strings.Contains(err.Error(), "its contract is unknown"); got != refused {
			t.Errorf("core of %s: %v", before, err)
		}
	}
}

// CX-12: a contract or names, never both; no way back and no large steps for what is released with the core; what was begun is
// taken along.
func TestChoose(t *testing.T) {
	core, acme := record(provider.Core, "cluster-api", "v1.12.0"), record(provider.Infrastructure, "acme", "v2.0.0")
	begun := acme
	begun.TargetVersion = "v2.1.0"
	unfinished := acme
	unfinished.Installing = true
	latest := map[string]string{"cluster-api v1beta2": "v1.14.1", "infrastructure-acme v1beta2": "v2.1.0"}
	cases := map[string]struct {
		contract  string
		named     map[provider.Type][]string
		installed []provider.Installed
		builtin   []providerset.Name
		want      string
		reason    string
	}{
		"neither":                {installed: []provider.Installed{core}, reason: install.ReasonRequest},
		"both":                   {contract: "v1beta2", named: map[provider.Type][]string{provider.Infrastructure: {"acme"}}, reason: install.ReasonRequest},
		"contract":               {contract: "v1beta2", installed: []provider.Installed{core, acme}, want: "cluster-api v1.14.1, infrastructure-acme v2.1.0"},
		"another contract":       {contract: "v1beta1", installed: []provider.Installed{core}, reason: install.ReasonContract},
		"without a release":      {contract: "v1beta2", installed: []provider.Installed{record(provider.Addon, "helm", "v0.1.0")}, reason: install.ReasonContract},
		"up to date":             {contract: "v1beta2", installed: []provider.Installed{record(provider.Infrastructure, "acme", "v2.1.0")}, want: ""},
		"a newer one is there":   {contract: "v1beta2", installed: []provider.Installed{record(provider.Infrastructure, "acme", "v2.2.0-rc.1")}, want: ""},
		"named":                  {named: map[provider.Type][]string{provider.Infrastructure: {"acme:v2.0.5"}}, installed: []provider.Installed{core, acme}, want: "infrastructure-acme v2.0.5"},
		"named, without version": {named: map[provider.Type][]string{provider.Infrastructure: {"acme"}}, installed: []provider.Installed{core, acme}, want: "infrastructure-acme v2.1.0"},
		"not installed":          {named: map[provider.Type][]string{"IPAMProvider": {"in-cluster"}}, installed: []provider.Installed{core}, reason: providerupgrade.ReasonNotInstalled},
		"another namespace":      {named: map[provider.Type][]string{provider.Infrastructure: {"other/acme:v2.1.0"}}, installed: []provider.Installed{acme}, reason: providerupgrade.ReasonNotInstalled},
		"twice":                  {named: map[provider.Type][]string{provider.Infrastructure: {"acme:v2.0.5", "acme:v2.1.0"}}, installed: []provider.Installed{acme}, reason: install.ReasonRequest},
		"built in":               {named: map[provider.Type][]string{provider.Core: {"cluster-api:v1.14.1"}}, builtin: []providerset.Name{providerset.Core}, reason: install.ReasonBuiltIn},
		"begun":                  {named: map[provider.Type][]string{provider.Core: {"cluster-api:v1.13.0"}}, installed: []provider.Installed{core, begun}, want: "cluster-api v1.13.0, infrastructure-acme v2.1.0"},
		"not installed to its end": {
			contract: "v1beta2", installed: []provider.Installed{unfinished}, reason: install.ReasonInstalled,
		},
		"back, of the core":   {named: map[provider.Type][]string{provider.Core: {"cluster-api:v1.11.0"}}, installed: []provider.Installed{core}, reason: providerupgrade.ReasonVersion},
		"back, of others":     {named: map[provider.Type][]string{provider.Infrastructure: {"acme:v1.9.0"}}, installed: []provider.Installed{acme}, want: "infrastructure-acme v1.9.0"},
		"over three minors":   {named: map[provider.Type][]string{provider.Core: {"cluster-api:v1.15.0"}}, installed: []provider.Installed{core}, want: "cluster-api v1.15.0"},
		"over four minors":    {named: map[provider.Type][]string{provider.Core: {"cluster-api:v1.16.0"}}, installed: []provider.Installed{core}, reason: providerupgrade.ReasonVersion},
		"no semantic version": {named: map[provider.Type][]string{provider.Core: {"cluster-api:new"}}, installed: []provider.Installed{core}, reason: providerupgrade.ReasonVersion},
	}
	for name, tc := range cases {
		cluster := install.ManagementCluster{ClusterState: install.ClusterState{Installed: tc.installed, Contract: "v1beta2"}, Builtin: tc.builtin}
		targets, _, err := providerupgrade.ChooseUpgrades(t.Context(), providerupgrade.UpgradeRequest{Contract: tc.contract, Named: tc.named}, cluster, releases(latest))
		if tc.reason != "" {
			if fault.As(err) == nil || fault.As(err).Reason != tc.reason {
				t.Errorf("%s: %v, and not the reason %s", name, err, tc.reason)
			}
			continue
		}
		var got []string
		for _, target := range targets {
			got = append(got, target.From.Label()+" "+target.To)
		}
		if err != nil || strings.Join(got, ", ") != tc.want {
			t.Errorf("%s: %q, not %q (%v)", name, got, tc.want, err)
		}
	}
}

const acmeComponents = `apiVersion: v1
kind: Namespace
metadata: {name: acme-system}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.infrastructure.cluster.x-k8s.io}
spec:
  group: infrastructure.cluster.x-k8s.io
  names: {kind: Thing, plural: things}
  versions: VERSIONS
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: acme-system}
spec: {template: {spec: {containers: [{name: manager, image: "registry.example/acme:VERSION"}]}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: VERSION, namespace: acme-system}
`

func item(t *testing.T, version, crdVersions string) install.LoadedProvider {
	t.Helper()
	text := strings.NewReplacer("VERSIONS", crdVersions, "VERSION", version).Replace(acmeComponents)
	source := repository.New(provider.Provider{Name: "acme", Type: provider.Infrastructure}, repository.Memory{
		Components: "components.yaml", Files: map[string]map[string]string{version: {"components.yaml": text}},
	}, repository.Options{})
	c, err := repository.LoadComponents(t.Context(), source, version, repository.ComponentOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return install.LoadedProvider{Components: c, Contract: "v1beta2"}
}

const (
	one  = "[{name: v1, storage: true}]"
	two  = "[{name: v1}, {name: v2, storage: true}]"
	only = "[{name: v2, storage: true}]"
)

func change(t *testing.T, from, to string) providerupgrade.Change {
	t.Helper()
	former := item(t, "v1.0.0", from)
	return providerupgrade.Change{
		From: record(provider.Infrastructure, "acme", "v1.0.0"), To: item(t, "v1.1.0", to), Former: &former, Present: former.Objects,
	}
}

// CX-12: the order of an upgrade: stored objects first, then Deployments stop, then what is gone goes, then the rest comes.
func TestPlan(t *testing.T) {
	stored := map[string]providerupgrade.StorageVersions{"things.infrastructure.cluster.x-k8s.io": {Current: "v2", All: []string{"v1", "v2"}}}
	p, err := providerupgrade.PlanUpgrade([]providerupgrade.Change{change(t, two, only)}, stored, install.InstallOptions{Wait: true})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"apply Provider infrastructure-acme in namespace acme-system: the upgrade to v1.1.0 starts",
		"migrate CustomResourceDefinition things.infrastructure.cluster.x-k8s.io: the new CRD does not have all stored versions",
		"stop Deployment manager in namespace acme-system: two versions must not run at the same time",
		"delete ConfigMap v1.0.0 in namespace acme-system: v1.1.0 does not include it",
		"apply CustomResourceDefinition things.infrastructure.cluster.x-k8s.io",
		"serve CustomResourceDefinition things.infrastructure.cluster.x-k8s.io",
		"apply ConfigMap v1.1.0 in namespace acme-system",
		"apply Deployment manager in namespace acme-system",
		"apply Provider infrastructure-acme in namespace acme-system: v1.1.0 is installed, but not available yet",
		"await Deployment manager in namespace acme-system",
		"apply Provider infrastructure-acme in namespace acme-system: the upgrade is complete",
	}
	var got []string
	for _, s := range p.Steps {
		got = append(got, s.String())
		if replicas, _, _ := unstructured.NestedInt64(object(s), "spec", "replicas"); s.Verb == install.Apply && object(s)["kind"] == "Deployment" && replicas != 1 {
			t.Errorf("the Deployment that was stopped is applied with %d replicas", replicas)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	stored["things.infrastructure.cluster.x-k8s.io"] = providerupgrade.StorageVersions{Current: "v1", All: []string{"v1"}}
	if _, err := providerupgrade.PlanUpgrade([]providerupgrade.Change{change(t, one, only)}, stored, install.InstallOptions{}); fault.As(err) == nil || fault.As(err).Reason != providerupgrade.ReasonStoredVersion {
		t.Errorf("objects that could not be read any more: %v", err)
	}
}

func object(s install.Step) map[string]any { return s.Object.Object }

// CX-12: the way back is the same plan with the former components, unless stored objects could not be read any more.
func TestBack(t *testing.T) {
	p, why, err := providerupgrade.PlanRollback([]providerupgrade.Change{change(t, two, only)}, install.InstallOptions{})
	if err != nil || why != "" {
		t.Fatal(why, err)
	}
	text := strings.Join(p.Lines(), "\n")
	for _, line := range []string{
		"the upgrade to v1.0.0 starts", "delete ConfigMap v1.1.0", "apply ConfigMap v1.0.0", "apply Deployment manager",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("%q is missing:\n%s", line, text)
		}
	}
	if _, why, err = providerupgrade.PlanRollback([]providerupgrade.Change{change(t, one, two)}, install.InstallOptions{}); err != nil || !strings.Contains(why, "in version v2, but v1.0.0 stores them in version v1") {
		t.Errorf("another version is stored: %q, %v", why, err)
	}
	gone := change(t, one, one)
	gone.Former = nil
	if _, why, err = providerupgrade.PlanRollback([]providerupgrade.Change{gone}, install.InstallOptions{}); err != nil || why == "" {
		t.Errorf("the former components are gone: %q, %v", why, err)
	}
}

// CX-12: all providers go together afterwards, also those that stay.
func TestCheck(t *testing.T) {
	c := change(t, one, one)
	if err := providerupgrade.CheckUpgrade([]providerupgrade.Change{c}, providerupgrade.OtherContracts{"ipam-old": "v1beta1"}, "v1beta2"); err != nil {
		t.Errorf("v1beta1 goes together with v1beta2: %v", err)
	}
	err := providerupgrade.CheckUpgrade([]providerupgrade.Change{c}, providerupgrade.OtherContracts{"ipam-old": "v1alpha4"}, "v1beta2")
	if fault.As(err) == nil || fault.As(err).Reason != install.ReasonContract || !strings.Contains(err.Error(), "ipam-old is not upgraded") {
		t.Errorf("one that stays: %v", err)
	}
	err = providerupgrade.CheckUpgrade([]providerupgrade.Change{c}, providerupgrade.OtherContracts{"ipam-old": "v1beta1"}, "")
	if fault.As(err) == nil || !strings.Contains(err.Error(), "has no core provider") {
		t.Errorf("without a core: %v", err)
	}
	c.To.Contract = "v1alpha4"
	if err := providerupgrade.CheckUpgrade([]providerupgrade.Change{c}, nil, "v1beta2"); fault.As(err) == nil || fault.As(err).Reason != install.ReasonContract {
		t.Errorf("one that is upgraded: %v", err)
	}
}

const customisationsOf = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: manager
  namespace: acme-system
  labels: {team: a}
  managedFields:
  - manager: slipway-clusterctl
    operation: Apply
    fieldsType: FieldsV1
    fieldsV1: {"f:spec": {"f:paused": {}}}
  - manager: kubectl-edit
    operation: Update
    fieldsType: FieldsV1
    fieldsV1: {"f:metadata": {"f:labels": {"f:team": {}}}, "f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"manager"}': {"f:image": {}}}}}}}
  - manager: kubectl
    operation: Update
    subresource: scale
    fieldsType: FieldsV1
    fieldsV1: {"f:spec": {"f:replicas": {}}}
  - manager: kube-controller-manager
    operation: Update
    subresource: status
    fieldsType: FieldsV1
    fieldsV1: {"f:status": {"f:replicas": {}}}
spec:
  paused: false
  replicas: 3
  template: {spec: {containers: [{name: manager, image: mine}]}}
status: {replicas: 3}
`

// CX-12: what people have set is listed by field and manager, with what becomes of it, and without values.
func TestCustomisations(t *testing.T) {
	live, after := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	for _, o := range []*unstructured.Unstructured{live, after} {
		if err := yaml.Unmarshal([]byte(customisationsOf), &o.Object); err != nil {
			t.Fatal(err)
		}
	}
	if err := unstructured.SetNestedField(after.Object, int64(1), "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedSlice(after.Object, []any{map[string]any{"name": "manager", "image": "theirs"}}, "spec", "template", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range providerupgrade.Customisations(live, after) {
		got = append(got, strings.TrimPrefix(c.String(), "Deployment manager in namespace acme-system: "))
	}
	want := []string{
		"metadata.labels.team, set by kubectl-edit, is preserved",
		"spec.replicas, set by kubectl, is lost",
		`spec.template.spec.containers[name="manager"].image, set by kubectl-edit, is lost`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if all := providerupgrade.Customisations(live, nil); len(all) != 3 || all[0].Preserved {
		t.Errorf("of an object that goes: %v", all)
	}
}
