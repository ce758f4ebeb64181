package bootstrap

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// said is what a user reads of a status.
type said struct {
	Name       string
	Created    bool
	Conditions map[string]string // type: status reason message
	Legacy     map[string]string // type: status reason severity
	Events     int
}

func read(r reconciler.Report) said {
	status := r.Status.(bootstrapv1.KubeadmConfigStatus)
	out := said{
		Name: status.DataSecretName, Created: ptr.Deref(status.Initialization.DataSecretCreated, false), Events: len(r.Events),
		Conditions: map[string]string{}, Legacy: map[string]string{},
	}
	for _, c := range status.Conditions {
		out.Conditions[c.Type] = string(c.Status) + " " + c.Reason + " " + c.Message
	}
	for _, c := range status.Deprecated.V1Beta1.Conditions {
		out.Legacy[string(c.Type)] = string(c.Status) + " " + c.Reason + " " + string(c.Severity)
	}
	return out
}

const goneCA = "Secret c-ca does not exist, and its content cannot be generated again, because the cluster depends on the original: until it is restored, no Machine can join, and the kubeconfig cannot be renewed. Restore it from a backup, or from ca.crt and ca.key in /etc/kubernetes/pki on a control plane node"

// KB-03, BC-03, BC-04
func TestReport(t *testing.T) {
	write := writeData{Name: "w"}
	done := said{
		Name: "w", Created: true,
		Conditions: map[string]string{"CertificatesAvailable": "True Available ", "DataSecretAvailable": "True Available ", "Ready": "True Ready "},
		Legacy:     map[string]string{"CertificatesAvailable": "True  ", "DataSecretAvailable": "True  ", "Ready": "True  "},
	}
	announced := done
	announced.Events = 1
	cases := map[string]struct {
		reason string
		in     []change
		out    reconciler.Outcome
		want   said
	}{
		"no owner": {"it waits", []change{func(s *snapshot) { s.Owner, s.RenderInput = nil, nil }}, reconciler.Outcome{}, said{
			Conditions: map[string]string{
				"DataSecretAvailable": "False NotAvailable Waiting for a Machine or MachinePool to become the owner of this KubeadmConfig",
				"Ready":               "False NotReady * DataSecretAvailable: Waiting for a Machine or MachinePool to become the owner of this KubeadmConfig"},
			Legacy: map[string]string{"DataSecretAvailable": "False WaitingForOwner Info", "Ready": "False WaitingForOwner Info"}}},
		"no infrastructure": {"the v1beta1 reason says which wait it is", []change{func(s *snapshot) {
			s.Cluster.Status.Initialization.InfrastructureProvisioned, s.RenderInput = nil, nil
		}}, reconciler.Outcome{}, said{
			Conditions: map[string]string{
				"DataSecretAvailable": "False NotAvailable Waiting for the infrastructure of Cluster c to be provisioned",
				"Ready":               "False NotReady * DataSecretAvailable: Waiting for the infrastructure of Cluster c to be provisioned"},
			Legacy: map[string]string{"DataSecretAvailable": "False WaitingForClusterInfrastructure Info", "Ready": "False WaitingForClusterInfrastructure Info"}}},
		"no control plane": {"the same", []change{func(s *snapshot) {
			s.Cluster.Status.Initialization.ControlPlaneInitialized, s.RenderInput = nil, nil
		}}, reconciler.Outcome{}, said{
			Conditions: map[string]string{
				"DataSecretAvailable": "False NotAvailable Waiting for the control plane of Cluster c to be initialized",
				"Ready":               "False NotReady * DataSecretAvailable: Waiting for the control plane of Cluster c to be initialized"},
			Legacy: map[string]string{"DataSecretAvailable": "False WaitingForControlPlaneAvailable Info", "Ready": "False WaitingForControlPlaneAvailable Info"}}},
		"no CA": {"certificates are missing, so is the data", []change{func(s *snapshot) { s.RenderInput.CA = nil }}, reconciler.Outcome{}, said{
			Conditions: map[string]string{
				"CertificatesAvailable": "False InternalError Waiting for Secret c-ca with the certificate of the cluster's CA in key tls.crt",
				"DataSecretAvailable":   "False NotAvailable Waiting for Secret c-ca with the certificate of the cluster's CA in key tls.crt",
				"Ready": "False NotReady * CertificatesAvailable: Waiting for Secret c-ca with the certificate of the cluster's CA in key tls.crt\n" +
					"* DataSecretAvailable: Waiting for Secret c-ca with the certificate of the cluster's CA in key tls.crt"},
			Legacy: map[string]string{"CertificatesAvailable": "False CertificatesCorrupted Error", "DataSecretAvailable": "False WaitingForCertificates Info", "Ready": "False WaitingForCertificates Info"}}},
		"a mistake": {"a person has to change something", []change{func(s *snapshot) { s.Owner.Version = "" }}, reconciler.Outcome{}, said{
			Conditions: map[string]string{
				"CertificatesAvailable": "True Available ",
				"DataSecretAvailable":   "False NotAvailable Machine m has no Kubernetes version; set it",
				"Ready":                 "False NotReady * DataSecretAvailable: Machine m has no Kubernetes version; set it"},
			Legacy: map[string]string{"CertificatesAvailable": "True  ", "DataSecretAvailable": "False DataSecretGenerationFailed Warning", "Ready": "False DataSecretGenerationFailed Warning"}, Events: 1}},
		"token chosen": {"on the way", nil, reconciler.Outcome{Done: []reconciler.Action{chooseToken{}}}, said{
			Conditions: map[string]string{
				"CertificatesAvailable": "True Available ",
				"DataSecretAvailable":   "False NotAvailable Bootstrap data is being created",
				"Ready":                 "False NotReady * DataSecretAvailable: Bootstrap data is being created"},
			Legacy: map[string]string{"CertificatesAvailable": "True  ", "DataSecretAvailable": "False NotAvailable Info", "Ready": "False NotAvailable Info"}}},
		"a write failed": {"the message does not change from try to try", []change{chosen, noToken}, reconciler.Outcome{Failed: write, Err: errors.New("conflict 12345")}, said{
			Conditions: map[string]string{
				"CertificatesAvailable": "True Available ",
				"DataSecretAvailable":   "False NotAvailable The last attempt to write bootstrap data to Secret w failed; retrying",
				"Ready":                 "False NotReady * DataSecretAvailable: The last attempt to write bootstrap data to Secret w failed; retrying"},
			Legacy: map[string]string{"CertificatesAvailable": "True  ", "DataSecretAvailable": "False DataSecretGenerationFailed Warning", "Ready": "False DataSecretGenerationFailed Warning"}}},
		"a certificate could not be created": {"it is named", []change{uninitialized, only()},
			reconciler.Outcome{Failed: createAuthority{Purpose: secrets.CA, Cluster: "c"}, Err: errors.New("refused")}, said{
				Conditions: map[string]string{
					"CertificatesAvailable": "False InternalError Secret c-ca could not be created; retrying",
					"DataSecretAvailable":   "False NotAvailable The last attempt to create Secret c-ca failed; retrying",
					"Ready": "False NotReady * CertificatesAvailable: Secret c-ca could not be created; retrying\n" +
						"* DataSecretAvailable: The last attempt to create Secret c-ca failed; retrying"},
				Legacy: map[string]string{"CertificatesAvailable": "False CertificatesCorrupted Error", "DataSecretAvailable": "False DataSecretGenerationFailed Warning", "Ready": "False DataSecretGenerationFailed Warning"}}},
		"written":  {"said in the same pass", []change{chosen, noToken}, reconciler.Outcome{Done: []reconciler.Action{createToken{ID: "abcdef"}, write}}, announced},
		"made":     {"and stays", []change{made, func(s *snapshot) { s.Owner.Joined, s.RenderInput = true, nil }}, reconciler.Outcome{}, done},
		"restored": {"from the Machine's spec (KB-27)", []change{func(s *snapshot) { s.Owner.DataSecretName, s.Owner.Joined, s.RenderInput = "w", true, nil }}, reconciler.Outcome{}, done},
		"deleted, joined": {"nothing reads it any more", []change{made, gone, func(s *snapshot) { s.Owner.Joined, s.RenderInput = true, nil }}, reconciler.Outcome{}, said{
			Name: "w", Created: true,
			Conditions: map[string]string{
				"CertificatesAvailable": "True Available ",
				"DataSecretAvailable":   "True Available Secret w was deleted; the Machine has joined and does not need it",
				"Ready":                 "True Ready * DataSecretAvailable: Secret w was deleted; the Machine has joined and does not need it"},
			Legacy: map[string]string{"CertificatesAvailable": "True  ", "DataSecretAvailable": "True  ", "Ready": "True  "}}},
		"deleted": {"it cannot be made again now", []change{made, chosen, gone, func(s *snapshot) { s.Connected = false }}, reconciler.Outcome{}, said{
			Name: "w", Created: true,
			Conditions: map[string]string{
				"CertificatesAvailable": "True Available ",
				"DataSecretAvailable":   "False NotAvailable Secret w was deleted: Waiting for the API server of Cluster c to respond",
				"Ready":                 "False NotReady * DataSecretAvailable: Secret w was deleted: Waiting for the API server of Cluster c to respond"},
			Legacy: map[string]string{"CertificatesAvailable": "True  ", "DataSecretAvailable": "False WaitingForWorkloadCluster Info", "Ready": "False WaitingForWorkloadCluster Info"}}},
		"deleted, the first": {"no other authority is generated: a machine may run with the one that is gone", []change{made, gone, uninitialized, only()}, reconciler.Outcome{}, said{
			Name: "w", Created: true,
			Conditions: map[string]string{
				"CertificatesAvailable": "False InternalError " + goneCA,
				"DataSecretAvailable":   "False NotAvailable Secret w was deleted: " + goneCA,
				"Ready":                 "False NotReady * CertificatesAvailable: " + goneCA + "\n* DataSecretAvailable: Secret w was deleted: " + goneCA},
			Legacy: map[string]string{"CertificatesAvailable": "False CertificatesCorrupted Error", "DataSecretAvailable": "False WaitingForCertificates Info", "Ready": "False WaitingForCertificates Info"}, Events: 1}},
		"made again": {"", []change{made, chosen, gone, noToken}, reconciler.Outcome{Done: []reconciler.Action{createToken{ID: "abcdef"}, write}}, announced},
		"rotated":    {"without another event", []change{pool, made, chosen, carrying("old"), tokenLeft(ttl)}, reconciler.Outcome{Done: []reconciler.Action{write}}, done},
		"cannot rotate": {"the data is there, and the reason is told", []change{pool, made, chosen, carrying(token), func(s *snapshot) { s.Connected = false }}, reconciler.Outcome{}, said{
			Name: "w", Created: true,
			Conditions: map[string]string{
				"CertificatesAvailable": "True Available ",
				"DataSecretAvailable":   "True Available Waiting for the API server of Cluster c to respond",
				"Ready":                 "True Ready * DataSecretAvailable: Waiting for the API server of Cluster c to respond"},
			Legacy: map[string]string{"CertificatesAvailable": "True  ", "DataSecretAvailable": "True  ", "Ready": "True  "}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSnapshot(tc.in...)
			report := report(s, decide(s), tc.out)
			if diff := cmp.Diff(tc.want, read(report)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			status := report.Status.(bootstrapv1.KubeadmConfigStatus)
			if status.ObservedGeneration != 3 {
				t.Errorf("observedGeneration is %d", status.ObservedGeneration)
			}
		})
	}
}

// KB-10: a token that the workload cluster lacks although data was written with it, or that another client has chosen, is told of; one that the
// controller has just chosen is not.
func TestTokenEvents(t *testing.T) {
	create, replace := createToken{ID: "abcdef"}, chooseToken{Why: reasonTokenMissing}
	for name, tc := range map[string]struct {
		in   []change
		done reconciler.Action
		want string
	}{
		"chosen":     {[]change{chosen, noToken}, create, ""},
		"first":      {[]change{noToken}, chooseToken{Why: "spec has none"}, ""},
		"given":      {[]change{chosen, noToken, func(s *snapshot) { s.TokenSetByUser = true }}, create, "BootstrapTokenCreated Created bootstrap token abcdef, with which the machine joins: it did not exist in Cluster c"},
		"gone":       {[]change{chosen, noToken, made}, create, "BootstrapTokenCreated Created bootstrap token abcdef, with which the machine joins: it did not exist in Cluster c"},
		"gone, pool": {[]change{pool, chosen, noToken, made, carrying(token)}, replace, "BootstrapTokenReplaced Replaced bootstrap token abcdef, which does not exist in Cluster c: machines join with a new token"},
		"aged, pool": {[]change{pool, chosen, tokenLeft(ttl / 3), made, carrying(token)}, chooseToken{Why: "the present one has passed half of its lifetime"}, ""},
	} {
		s := newSnapshot(tc.in...)
		got := ""
		p := decide(s)
		if len(p.Actions) == 0 || p.Actions[0] != tc.done {
			t.Errorf("%s: the plan is %v, not %v", name, p.Actions, tc.done)
		}
		for _, e := range report(s, p, reconciler.Outcome{Done: []reconciler.Action{tc.done}}).Events {
			got = e.Reason + " " + e.Message
		}
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

// KB-10: who has set the token is read from the managed fields.
func TestGivenToken(t *testing.T) {
	w := newWorld(t, build(t, ownedBy("Machine", "m"), machine(), cluster(), ca()).WithReturnManagedFields().Build())
	w.settle()
	if c := w.config(); w.token() == "" || isTokenSetByUser(c) {
		t.Errorf("token %q was chosen here: %+v", w.token(), c.ManagedFields)
	}
	c := ownedBy("Machine", "m")
	if c.Spec.JoinConfiguration.Discovery.BootstrapToken.Token = token; !isTokenSetByUser(c) {
		t.Error("the token was set by another client")
	}
}

func TestReportKeepsTransitionTimes(t *testing.T) {
	before := metav1.Unix(1e9, 0)
	s := newSnapshot(made, func(s *snapshot) {
		s.Owner.Joined = true
		s.Config.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Ready", LastTransitionTime: before}}
		s.Config.SetV1Beta1Conditions(clusterv1.Conditions{{Type: "Ready", Status: "True", LastTransitionTime: before}})
	})
	status := report(s, decide(s), reconciler.Outcome{}).Status.(bootstrapv1.KubeadmConfigStatus)
	for _, c := range status.Conditions {
		if c.Type == "Ready" && !c.LastTransitionTime.Equal(&before) {
			t.Error("a condition that stays keeps its time")
		}
	}
	for _, c := range status.Deprecated.V1Beta1.Conditions {
		if c.Type == "Ready" && !c.LastTransitionTime.Equal(&before) {
			t.Error("so does its v1beta1 form")
		}
	}
}
