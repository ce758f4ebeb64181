package addons

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	"github.com/coredns/corefile-migration/migration"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
)

// maxCorefile limits the size of a Corefile to migrate, in bytes.
const maxCorefile = 64 << 10

// dnsUpgrade is the input of the plan for an upgrade of CoreDNS ([PlanUpgrades]).
type dnsUpgrade struct {
	KubeadmState
	desired  desiredState
	from, to image
	// fromRelease and toRelease are the CoreDNS versions of the two images.
	fromRelease, toRelease semver.Version
}

// planDNSUpgrade returns the changes that can be applied now to reach the desired image of CoreDNS. For the inputs see
// the table of [PlanUpgrades].
func planDNSUpgrade(f KubeadmState, d desiredState) addon {
	a := addon{Name: "CoreDNS"}
	switch {
	case d.SkipDNS:
		a.Skipped = "the KubeadmControlPlane has the annotation to skip it"
		return a
	case !d.Cluster.IsDefined():
		a.Skipped = "the KubeadmControlPlane has no clusterConfiguration"
		return a
	case f.Corefile == nil:
		a.Skipped = "ConfigMap coredns does not exist"
		return a
	case f.DNS == nil:
		a.Skipped = "Deployment coredns does not exist"
		return a
	}
	a.Image = imageOf(f.DNS.Spec.Template.Spec, dnsName)
	if a.Image == "" {
		a.Skipped = "Deployment coredns has no container coredns"
		return a
	}
	m, err := newDNSUpgrade(f, d, a.Image)
	if err == nil && (m.to != m.from || m.isInterrupted()) {
		a.Changes, err = m.changes()
	}
	if err != nil {
		a.Changes, a.Problem = nil, err.Error()
	}
	return a
}

// newDNSUpgrade compares the current with the desired image. The error is a problem that the user has to correct.
func newDNSUpgrade(f KubeadmState, d desiredState, current string) (m dnsUpgrade, err error) {
	m = dnsUpgrade{KubeadmState: f, desired: d}
	if m.from, err = parseImage(current); err != nil {
		return m, err
	}
	m.to = m.from.inRepository(cmp.Or(d.Cluster.DNS.ImageRepository, d.Cluster.ImageRepository))
	m.to.tag = cmp.Or(d.Cluster.DNS.ImageTag, m.from.tag)
	if err = m.to.check(); err != nil {
		return m, err
	}
	if m.to == m.from {
		return m, nil
	}
	if m.fromRelease, err = release(m.from.tag); err != nil {
		return m, err
	}
	if m.toRelease, err = release(m.to.tag); err != nil {
		return m, err
	}
	if m.toRelease.LT(m.fromRelease) {
		return m, fmt.Errorf("version %s is older than %s, the running version: its Corefile cannot be migrated back", m.to.tag, m.from.tag)
	}
	return m, nil
}

// isInterrupted reports whether the Deployment still mounts the backup of the Corefile during a migration.
func (m dnsUpgrade) isInterrupted() bool {
	key := volumeKey(m.DNS)
	return key != nil && *key == backupKey
}

// changes returns the changes that can be applied now. During the migration, the Pods of the old version mount a
// backup of the Corefile, because they reload their configuration. Each row depends on observed state only, so the
// migration can be interrupted at any point:
//
//	Deployment mounts Corefile, backup differs from it    write the backup
//	Deployment mounts Corefile, backup is equal           mount the backup
//	Deployment mounts the backup                          write the Corefile migrated from the backup
//	Corefile is migrated                                  kubeadm's configuration, permissions, then image and mount
//
// The first two rows are skipped if the migration does not change the Corefile.
func (m dnsUpgrade) changes() ([]Change, error) {
	have, backup := m.Corefile.Data[corefileKey], m.Corefile.Data[backupKey]
	key := volumeKey(m.DNS)
	source := have
	if key != nil && *key == backupKey && backup != "" {
		source = backup
	}
	want, err := migrated(source, m.fromRelease.String(), m.toRelease.String())
	if err != nil {
		return nil, err
	}
	if key == nil && backup != "" && want != have { // mounted in another way, so all changes are made at once
		if before, err := migrated(backup, m.fromRelease.String(), m.toRelease.String()); err == nil && before == have {
			want = have
		}
	}
	switch mounts := key != nil && *key == corefileKey; {
	case want == have:
		return m.finalChanges()
	case mounts && backup != have:
		return []Change{change(m.Corefile, m.corefileWith(have, have), "backup of the Corefile, which is migrated from %s to %s", m.from.tag, m.to.tag)}, nil
	case mounts:
		after := m.DNS.DeepCopy()
		*volumeKey(after) = backupKey
		return []Change{change(m.DNS, after, "mount the backup of the Corefile while it is migrated from %s to %s", m.from.tag, m.to.tag)}, nil
	}
	write := change(m.Corefile, m.corefileWith(want, source), "Corefile migrated from %s to %s", m.from.tag, m.to.tag)
	last, err := m.finalChanges()
	return append([]Change{write}, last...), err
}

func (m dnsUpgrade) corefileWith(corefile, backup string) *corev1.ConfigMap {
	after := m.Corefile.DeepCopy()
	after.Data[corefileKey], after.Data[backupKey] = corefile, backup
	return after
}

// migrated returns a Corefile for another release of CoreDNS. A panic of the migration library on an invalid Corefile
// is returned as an error.
func migrated(corefile, from, to string) (out string, err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("the Corefile in ConfigMap coredns cannot be read")
		}
	}()
	if from == to {
		return corefile, nil
	}
	if corefile == "" || len(corefile) > maxCorefile {
		return "", fmt.Errorf("ConfigMap coredns must have a key %s of at most %d KiB", corefileKey, maxCorefile>>10)
	}
	if out, err = migration.Migrate(from, to, corefile, false); err != nil {
		return "", fmt.Errorf("the Corefile cannot be migrated from %s to %s (%s): upgrade CoreDNS manually, and annotate the KubeadmControlPlane with %s",
			from, to, clipped(err.Error()), controlplanev1.SkipCoreDNSAnnotation)
	}
	return out, nil
}

// finalChanges returns the changes that set the image of CoreDNS.
func (m dnsUpgrade) finalChanges() ([]Change, error) {
	s, problem := stored(m.KubeadmState)
	if problem != "" {
		return nil, errors.New(problem)
	}
	var out []Change
	if s.FollowDNS(m.desired.Cluster.DNS); len(s.Changed()) > 0 && m.to != m.from {
		after, problem := configWith(m.Config, s)
		if problem != "" {
			return nil, errors.New(problem)
		}
		out = append(out, change(m.Config, after, "image of CoreDNS"))
	}
	if m.DNSRole != nil && !readsEndpointSlices(m.DNSRole) {
		after := m.DNSRole.DeepCopy()
		after.Rules = append(after.Rules, rbacv1.PolicyRule{Verbs: []string{"list", "watch"}, APIGroups: []string{discovery}, Resources: []string{endpointSlices}})
		out = append(out, change(m.DNSRole, after, "CoreDNS reads EndpointSlices"))
	}
	after := m.DNS.DeepCopy()
	pod := &after.Spec.Template.Spec
	setImage(pod, dnsName, m.to)
	if key := volumeKey(after); key != nil {
		*key = corefileKey
	}
	if !tolerates(*pod) {
		pod.Tolerations = append(pod.Tolerations, corev1.Toleration{Key: controlPlaneTaint, Effect: corev1.TaintEffectNoSchedule})
	}
	return append(out, change(m.DNS, after, "image %s", m.to)), nil
}

const (
	discovery, endpointSlices = "discovery.k8s.io", "endpointslices"
	controlPlaneTaint         = "node-role.kubernetes.io/control-plane"
)

func readsEndpointSlices(role *rbacv1.ClusterRole) bool {
	return slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
		return containsOrAll(rule.APIGroups, discovery) && containsOrAll(rule.Resources, endpointSlices) &&
			containsOrAll(rule.Verbs, "list") && containsOrAll(rule.Verbs, "watch")
	})
}

func containsOrAll(names []string, name string) bool {
	return slices.Contains(names, name) || slices.Contains(names, rbacv1.VerbAll)
}

// tolerates reports whether CoreDNS can run on control plane nodes, as in the manifest of kubeadm.
func tolerates(pod corev1.PodSpec) bool {
	return slices.ContainsFunc(pod.Tolerations, func(t corev1.Toleration) bool {
		return t.Key == controlPlaneTaint || t.Key == "" && t.Operator == corev1.TolerationOpExists
	})
}
