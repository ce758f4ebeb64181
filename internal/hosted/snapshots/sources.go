package snapshots

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	controlplaneetcd "github.com/slipwayhq/slipway/internal/controlplane/etcd"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
	"github.com/slipwayhq/slipway/internal/fault"
	kubeadmetcd "github.com/slipwayhq/slipway/internal/kubeadm/etcd"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/snapshots"
	"github.com/slipwayhq/slipway/internal/workload/portforward"
)

// etcdPort is the client port of etcd members created by kubeadm.
const etcdPort = 2379

// Forwarder connects to ports of Pods of workload clusters. The manager passes its connections to workload clusters.
type Forwarder interface {
	Forward(ctx context.Context, cluster client.ObjectKey, to portforward.Target) (net.Conn, error)
}

// EtcdConnector connects to the etcd of hosted control planes on this host and of control planes created by kubeadm. It
// implements [Sources] for the manager: observe calls Problem for each Cluster, and the job that takes a snapshot calls
// Open. It only reads from etcd.
type EtcdConnector struct {
	// Client reads Clusters, control planes, Machines and Secrets.
	Client client.Client
	// Planes is the folder of all hosted control planes on this host.
	Planes string
	// Forwarder connects to Pods of workload clusters.
	Forwarder Forwarder
	// InPods is true if hosted control planes run in Pods of the management cluster, where their etcd is not
	// reachable.
	InPods bool
	Now    func() time.Time
}

// Problem implements Sources.
func (r EtcdConnector) Problem(ctx context.Context, cluster *clusterv1.Cluster) (string, error) {
	switch ref := cluster.Spec.ControlPlaneRef; {
	case ref.Kind == "HostedControlPlane" && ref.APIGroup == hostedv1.GroupVersion.Group:
		plane := &hostedv1.HostedControlPlane{}
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: ref.Name}, plane)
		if err == nil && plane.Spec.Backend.Simulated != nil {
			return "Its control plane is simulated and has no etcd: there is nothing to take a snapshot of", nil
		}
		if client.IgnoreNotFound(err) != nil {
			return "", err
		}
		if r.InPods {
			return "Its control plane runs in a Pod, where slipway does not reach its etcd: take snapshots of its volume", nil
		}
	case ref.Kind == "KubeadmControlPlane" && ref.APIGroup == controlplanev1.GroupVersion.Group:
	default:
		return fmt.Sprintf("Its control plane of kind %q is neither a HostedControlPlane nor a KubeadmControlPlane: slipway does not reach its etcd", ref.Kind), nil
	}
	if done := cluster.Status.Initialization.ControlPlaneInitialized; done == nil || !*done {
		return "Waiting for its control plane to be initialized", nil
	}
	return "", nil
}

// Open implements Sources.
func (r EtcdConnector) Open(ctx context.Context, key client.ObjectKey) (Source, error) {
	cluster := &clusterv1.Cluster{}
	if err := r.Client.Get(ctx, key, cluster); err != nil {
		return nil, err
	}
	if cluster.Spec.ControlPlaneRef.Kind == "HostedControlPlane" {
		return r.openHosted(client.ObjectKey{Namespace: key.Namespace, Name: cluster.Spec.ControlPlaneRef.Name})
	}
	return r.openMachines(ctx, key)
}

// openHosted connects to the etcd of a hosted control plane on this host.
func (r EtcdConnector) openHosted(plane client.ObjectKey) (Source, error) {
	folder := processconfig.Folder(filepath.Join(r.Planes, plane.Namespace+"."+plane.Name))
	socket, err := controlplaneetcd.ClientSocket(folder.Etcd())
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(socket); err != nil {
		return nil, fault.New(fault.Unreachable, "EtcdMemberUnreachable", "HostedControlPlane %s does not run on this host", plane.Name).From(err)
	}
	user, own := uidisolation.UserOfFolder(string(folder))
	if !own {
		user = os.Geteuid()
	}
	connection, err := kubeadmetcd.ConnectToSocket(socket, user)
	if err != nil {
		return nil, err
	}
	return etcdSource{Connection: connection, staticState: func() (snapshots.EtcdState, error) {
		data, err := folder.ReadData()
		return snapshots.EtcdState{Kubernetes: data.Version, EncryptionKeys: data.EncryptionKeys}, err
	}}, nil
}

// etcdAuthority returns the Secret with the CA that signs etcd client certificates for the Machines of a control
// plane.
func (r EtcdConnector) etcdAuthority(ctx context.Context, cluster client.ObjectKey) (*corev1.Secret, error) {
	found, err := secrets.Read(ctx, cluster, []secrets.Purpose{secrets.Etcd, secrets.EtcdClient}, r.Client)
	if err != nil {
		return nil, err
	}
	secret, name := found[secrets.Etcd], secrets.Etcd.SecretName(cluster.Name)
	switch {
	case found[secrets.EtcdClient] != nil: // provided by the user for an external etcd
		return nil, fault.New(fault.Invalid, "EtcdExternal", "The etcd of the cluster is external (Secret %s): take its snapshots where it runs",
			secrets.EtcdClient.SecretName(cluster.Name))
	case secret == nil:
		return nil, fault.New(fault.Invalid, "EtcdAuthorityMissing", "Secret %s is missing, and etcd cannot be reached without it; condition CertificatesAvailable of the "+
			"control plane has the remedy", name)
	case len(secret.Data[corev1.TLSPrivateKeyKey]) == 0:
		return nil, fault.New(fault.Invalid, "EtcdAuthorityMissing", "Secret %s has no private key to sign an etcd client certificate: add it as tls.key", name)
	}
	return secret, nil
}

// openMachines connects to the first reachable etcd member on the Machines of a control plane.
func (r EtcdConnector) openMachines(ctx context.Context, cluster client.ObjectKey) (Source, error) {
	list := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, list, client.InNamespace(cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name},
		client.HasLabels{clusterv1.MachineControlPlaneLabel}); err != nil {
		return nil, fmt.Errorf("listing the Machines of the control plane: %w", err)
	}
	secret, err := r.etcdAuthority(ctx, cluster)
	if err != nil {
		return nil, err
	}
	config, err := kubeadmetcd.ClientTLS(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey], r.Now())
	if err != nil {
		return nil, err
	}
	machines := slices.DeleteFunc(list.Items, func(m clusterv1.Machine) bool { return m.Status.NodeRef.Name == "" || !m.DeletionTimestamp.IsZero() })
	slices.SortFunc(machines, func(a, b clusterv1.Machine) int { return strings.Compare(a.Name, b.Name) })
	failed := error(fault.New(fault.Unreachable, "NoEtcdMember", "No Machine of the control plane has a Node"))
	for _, m := range machines {
		connection, err := kubeadmetcd.ConnectTo(kubeadmetcd.Config{TLS: config, Dial: func(ctx context.Context, node string) (net.Conn, error) {
			return r.Forwarder.Forward(ctx, cluster, portforward.Target{Namespace: metav1.NamespaceSystem, Pod: "etcd-" + node, Port: etcdPort})
		}}, m.Status.NodeRef.Name)
		if err != nil {
			return nil, err
		}
		if failed = checkResponds(ctx, connection); failed == nil {
			version := m.Spec.Version
			return etcdSource{Connection: connection, staticState: func() (snapshots.EtcdState, error) { return snapshots.EtcdState{Kubernetes: version}, nil }}, nil
		}
		_ = connection.Close()
	}
	return nil, failed
}

// memberTimeout limits a status request to an etcd member.
const memberTimeout = 15 * time.Second

// checkResponds returns an error if the member does not respond in time.
func checkResponds(ctx context.Context, c *kubeadmetcd.Connection) error {
	ctx, cancel := context.WithTimeout(ctx, memberTimeout)
	defer cancel()
	_, _, err := c.State(ctx)
	return err
}

// etcdSource is a source over a connection.
type etcdSource struct {
	*kubeadmetcd.Connection
	// staticState returns the properties of the control plane that are not read from etcd.
	staticState func() (snapshots.EtcdState, error)
}

func (c etcdSource) ReadState(ctx context.Context) (snapshots.EtcdState, error) {
	facts, err := c.staticState()
	if err != nil {
		return facts, err
	}
	ctx, cancel := context.WithTimeout(ctx, memberTimeout)
	defer cancel()
	facts.Revision, facts.Etcd, err = c.State(ctx)
	return facts, err
}
