package addons

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kubeadm/api"
)

// ChangesBeforeJoin returns the changes that are required before a Machine with the desired version and configuration
// joins, or the problem that the user has to correct first. The KubeadmControlPlane controller calls it before it
// creates a joining Machine, because kubeadm join reads these objects. The user sees the problem as a wait.
func ChangesBeforeJoin(f KubeadmState, d desiredState) (changes []Change, problem string) {
	if f.Problem != "" {
		return nil, f.Problem
	}
	for _, role := range roles() {
		if !f.Roles[roleKey(role)] {
			changes = append(changes, Change{Object: describe(role, role.GetName()), Why: "kubeadm needs it to join Machines", after: role})
		}
	}
	s, problem := stored(f)
	if problem != "" {
		return nil, problem
	}
	err := s.ForVersion(d.Version)
	if err == nil && d.Cluster.IsDefined() {
		err = s.ApplyConfiguration(d.Cluster)
	}
	if err != nil {
		return nil, ErrorText(err)
	}
	if names := s.Changed(); len(names) > 0 {
		after, problem := configWith(f.Config, s)
		if problem != "" {
			return nil, problem
		}
		changes = append(changes, change(f.Config, after, "%s of the ClusterConfiguration for version %s", condition.Names(names), d.Version))
	}
	return changes, ""
}

// stored parses the ClusterConfiguration in ConfigMap kubeadm-config, or returns the problem that the user has to
// correct.
func stored(f KubeadmState) (api.StoredConfiguration, string) {
	if f.Config == nil {
		return api.StoredConfiguration{}, "ConfigMap kubeadm-config of the workload cluster does not exist: restore it, because Machines cannot join without it"
	}
	s, err := api.ParseStored(f.Config.Data[configKey])
	if err != nil {
		return s, "ConfigMap kubeadm-config of the workload cluster cannot be changed: " + ErrorText(err)
	}
	return s, ""
}

// configWith returns ConfigMap kubeadm-config with a changed ClusterConfiguration.
func configWith(config *corev1.ConfigMap, s api.StoredConfiguration) (*corev1.ConfigMap, string) {
	out, err := s.Text()
	if err != nil {
		return nil, ErrorText(err)
	}
	after := config.DeepCopy()
	after.Data[configKey] = out
	return after, ""
}

// ErrorText returns the message of a fault, without text from other programs. The KubeadmControlPlane controller
// reports it when the objects cannot be read.
func ErrorText(err error) string {
	if f := fault.As(err); f != nil {
		return f.Message
	}
	return err.Error()
}

func roleKey(o client.Object) string { return describe(o, o.GetName()) }

const (
	// joiningGroup is the group of joining nodes that use a bootstrap token of kubeadm.
	joiningGroup = "system:bootstrappers:kubeadm:default-node-token"
	nodesGroup   = "system:nodes"
)

// roles returns the roles and bindings that the supported versions of kubeadm expect when a Machine joins. Names and
// rules are those that kubeadm creates. kubeadm init only creates the roles for its own version. A role that exists is
// not changed.
func roles() []client.Object {
	const admins = "kubeadm:cluster-admins"
	system := metav1.NamespaceSystem
	return slices.Concat(
		grant(metav1.ObjectMeta{Name: "kubeadm:get-nodes"}, getting("nodes"), joiningGroup),
		grant(metav1.ObjectMeta{Namespace: system, Name: "kubeadm:kubelet-config"}, getting("configmaps", "kubelet-config"), nodesGroup, joiningGroup),
		grant(metav1.ObjectMeta{Namespace: system, Name: "kubeadm:nodes-kubeadm-config"}, getting("configmaps", configName), nodesGroup, joiningGroup),
		[]client.Object{
			bind(admins, "cluster-admin", rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: admins}),
			bind("kubeadm:apiserver-kubelet-client", "system:kubelet-api-admin",
				rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "kube-apiserver-kubelet-client"}),
		},
	)
}

// getting returns a rule to get a resource, optionally restricted to names.
func getting(resource string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{resource}, ResourceNames: names}
}

// bind binds subjects to a ClusterRole.
func bind(name, role string, subjects ...rbacv1.Subject) client.Object {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
}

// grant returns a Role or ClusterRole and its binding to groups.
func grant(meta metav1.ObjectMeta, rule rbacv1.PolicyRule, groups ...string) []client.Object {
	var subjects []rbacv1.Subject
	for _, group := range groups {
		subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: group})
	}
	if meta.Namespace == "" {
		return []client.Object{&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}, bind(meta.Name, meta.Name, subjects...)}
	}
	return []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}},
		&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}},
	}
}
