package simulated

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/manifest"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/simulated"
	"github.com/slipwayhq/slipway/internal/version"
)

// Files of the bootstrap data from which a control plane is created, at kubeadm's paths.
const (
	caCert   = "/etc/kubernetes/pki/ca.crt"
	caKey    = "/etc/kubernetes/pki/ca.key"
	etcdCert = "/etc/kubernetes/pki/etcd/ca.crt"
	etcdKey  = "/etc/kubernetes/pki/etcd/ca.key"
)

// controlPlane ensures that the API server of a machine's cluster responds and is not older than the machine. Create
// calls it for machines of a control plane. A simulated cluster has a single API server, regardless of the number of
// its machines. The first machine creates it and others join it. If it no longer exists, as after a move or a restore,
// any machine that was part of it recreates it, because the first machine may have been replaced.
func (m *simulatedMachines) controlPlane(ctx context.Context, spec backend.MachineSpec) error {
	cluster := types.NamespacedName{Namespace: spec.Owner.Object.Namespace, Name: spec.Owner.Cluster}
	st := m.server.StatusOf(cluster)
	if st.Running && !version.IsOlder(st.Spec.Version, spec.Version) {
		return nil
	}
	name := simulated.MachineControlPlaneName(cluster)
	if st.Running {
		st.Spec.Version = spec.Version
		return m.server.Start(name, st.Spec)
	}
	if err := m.allowed(name, spec); err != nil {
		return err
	}
	files, err := spec.Files(ctx)
	if err != nil {
		return err
	}
	for _, path := range []string{caCert, caKey} {
		if len(files[path]) == 0 {
			return fault.New(fault.Invalid, "BootstrapDataIncomplete", "The bootstrap data has no file %s: a simulated control plane is created from it", path)
		}
	}
	if !m.server.Status(name).Exists && !spec.ProvisionedBefore && clusterConfiguration(files) == "" {
		return fault.New(fault.Transient, "WaitingForControlPlane", "Waiting for the first machine of the control plane: this one joins it")
	}
	return m.server.Start(name, simulated.Spec{
		Cluster: cluster, Version: spec.Version, Address: spec.Endpoint,
		CACert: files[caCert], CAKey: files[caKey], EtcdCert: files[etcdCert], EtcdKey: files[etcdKey],
	})
}

// allowed rejects a control plane that exceeds the limit or would listen on another endpoint. The check is needed
// because authors of a Cluster choose the endpoint, and this program listens on it.
func (m *simulatedMachines) allowed(name string, spec backend.MachineSpec) error {
	if spec.Endpoint == "" {
		return fault.New(fault.Transient, "WaitingForControlPlaneEndpoint", "Waiting for the Cluster to have a control plane endpoint")
	}
	at, err := netip.ParseAddrPort(spec.Endpoint)
	first, last := simulated.Ports()
	if err != nil || at.Addr().String() != simulated.Host || at.Port() < first || at.Port() > last {
		return fault.New(fault.Invalid, "EndpointNotAllowed",
			"Control plane endpoint %s is not allowed: a simulated control plane listens at %s, on an automatically chosen port; create the cluster without an endpoint", spec.Endpoint, simulated.Host)
	}
	if m.server.IsKnown(name) {
		return nil
	}
	return checkQuota(m.server, spec.Owner.Object.Namespace, spec.Policy)
}

// checkQuota returns an error if one more control plane exceeds the operator's limit.
func checkQuota(s *simulated.Server, namespace string, allowed policy.Configuration) error {
	own, all := s.Count(namespace)
	if message := allowed.Maxima.SimulatedControlPlanes.Exceeded("maxima.simulatedControlPlanes", namespace, own, all); message != "" {
		return fault.New(fault.Invalid, "DeniedByPolicy", "%s", message)
	}
	return nil
}

// join creates the etcd member of a machine and, for the first machine, the objects that kubeadm init creates in the
// cluster. simulatedMachines.Create calls it.
func (m *simulatedMachines) join(ctx context.Context, ref backend.Ref, spec backend.MachineSpec) error {
	if members := m.server.Etcd(ref.ClusterKey()); members != nil {
		joined, err := members.Join(spec.Hostname, address(spec.Name).String())
		if err == nil && !joined {
			err = fault.New(fault.Transient, "EtcdNoQuorum", "The etcd member of Node %s cannot join: the others have no quorum", spec.Hostname)
		}
		if err != nil {
			return err
		}
	}
	ctx, workload := m.server.Workload(ctx, ref.ClusterKey())
	if workload == nil {
		return unreachableFault(ref.Cluster)
	}
	_, err := workload.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, kubeadmConfig, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		var files map[string][]byte
		if files, err = spec.Files(ctx); err == nil {
			err = initialize(ctx, workload, spec.Version, clusterConfiguration(files))
		}
	}
	if err != nil {
		return fmt.Errorf("preparing the simulated cluster %s: %w", ref.Cluster, err)
	}
	for _, pod := range staticPods(spec) {
		_, err := workload.CoreV1().Pods(metav1.NamespaceSystem).Create(ctx, pod, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating Pod %s: %w", pod.Name, err)
		}
	}
	return nil
}

// leave updates the control plane when a machine is switched off: its etcd member stops, and the cluster is removed
// with the last machine. simulatedMachines.Delete calls it.
func (m *simulatedMachines) leave(ref backend.Ref) error {
	cluster := ref.ClusterKey()
	members := m.server.Etcd(cluster)
	if members == nil {
		return nil
	}
	if err := members.Stop(backend.Hostname(ref.Object.Name)); err != nil {
		return err
	}
	notes := m.server.Notes(cluster)
	if notes == nil {
		return nil
	}
	for _, name := range notes.Names() {
		if readState(notes, name).ControlPlane {
			return nil
		}
	}
	return m.server.Remove(simulated.MachineControlPlaneName(cluster))
}

// SetFaults implements [faultyKubelets]: it applies the faults that an annotation requests to the etcd member and the
// static Pods of a machine.
func (m *simulatedMachines) SetFaults(ctx context.Context, ref backend.Ref, faults string) error {
	notes, err := m.notes(ref.ClusterKey())
	if err != nil {
		return err
	}
	wrong, err := parseFaults(faults)
	if err != nil {
		return err
	}
	host := backend.Hostname(ref.Object.Name)
	if members := m.server.Etcd(ref.ClusterKey()); members != nil {
		if err := members.Change(host, wrong.member); err != nil {
			return err
		}
	}
	ctx, workload := m.server.Workload(ctx, ref.ClusterKey())
	if workload == nil {
		return unreachableFault(ref.Cluster)
	}
	pods := workload.CoreV1().Pods(metav1.NamespaceSystem)
	for _, component := range components {
		pod, err := pods.Get(ctx, component+"-"+host, metav1.GetOptions{})
		if err == nil && wrong.change(pod, component, metav1.NewTime(m.now())) {
			_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("changing the status of Pod %s-%s: %w", component, host, err)
		}
	}
	n := readState(notes, host)
	n.Faults = faults
	return writeState(notes, host, n)
}

// components lists the control plane components, which run in static Pods.
var components = [...]string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// staticPods returns the static Pods that kubeadm creates on a control plane node.
func staticPods(spec backend.MachineSpec) []*corev1.Pod {
	var out []*corev1.Pod
	for _, component := range components {
		out = append(out, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: metav1.NamespaceSystem, Name: component + "-" + spec.Hostname,
				Labels:      map[string]string{"component": component, "tier": "control-plane"},
				Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "simulated"},
			},
			Spec: corev1.PodSpec{
				NodeName: spec.Hostname, HostNetwork: true,
				Containers:  []corev1.Container{{Name: component, Image: imageRepository + "/" + component + ":" + spec.Version}},
				Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			},
		})
	}
	return out
}

// asControlPlane adds the labels and the taint of kubeadm's control plane nodes to the Node. newNode calls it.
func asControlPlane(node *corev1.Node) {
	node.Labels[controlPlaneRole] = ""
	node.Labels["node.kubernetes.io/exclude-from-external-load-balancers"] = ""
	node.Spec.Taints = []corev1.Taint{{Key: controlPlaneRole, Effect: corev1.TaintEffectNoSchedule}}
}

const controlPlaneRole = "node-role.kubernetes.io/control-plane"

// clusterConfiguration returns the ClusterConfiguration in the files of bootstrap data. It is empty if there is none,
// as for machines that join.
func clusterConfiguration(files map[string][]byte) string {
	for _, content := range files {
		documents, _ := manifest.Documents(content) // not every file is a manifest
		for _, document := range documents {
			if bytes.Contains(document, []byte("kind: ClusterConfiguration")) {
				return string(document)
			}
		}
	}
	return ""
}
