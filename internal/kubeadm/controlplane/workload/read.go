package workload

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kubeadm/etcd"
)

// Clusters connects to workload clusters. The manager passes its connections.
type Clusters interface {
	Client(ctx context.Context, cluster client.ObjectKey) (client.Client, error)
}

// EtcdConnector connects to the etcd members on Nodes of a workload cluster. [EtcdConnections] implements it.
type EtcdConnector interface {
	Etcd(ctx context.Context, cluster client.ObjectKey, nodes []string) (etcd.Cluster, error)
}

// CertificateReader reads the expiration of API server certificates. [ExpiryReader] implements it.
type CertificateReader interface {
	Expiry(ctx context.Context, s ExpiryServer) (time.Time, error)
}

// Reader reads workload clusters. The KubeadmControlPlane controller calls [Reader.Read] when the cached [State] is due
// for a refresh, and before it changes Machines or etcd members.
type Reader struct {
	Clusters     Clusters
	Members      EtcdConnector
	Certificates CertificateReader
	Now          func() time.Time
}

// ReadRequest is the scope of a read. The KubeadmControlPlane controller fills it in, because it knows the Machines and
// the recovery request.
type ReadRequest struct {
	Cluster client.ObjectKey
	// Nodes are the Nodes of Machines that are not being deleted, and Leaving of those that are. For Others, only the
	// existence of the Nodes is read.
	Nodes, Leaving, Others []string
	// Managed is true if etcd runs on the Machines.
	Managed bool
	// Certificates are the API servers whose certificates are read.
	Certificates []ExpiryServer
}

// Read reads a workload cluster. Unresponsive components are reported in the state, and all other problems as an
// error.
func (r Reader) Read(ctx context.Context, q ReadRequest) (State, error) {
	s := State{At: r.Now(), ReadNodes: map[string]bool{}, Nodes: map[string]*corev1.Node{}, Pods: map[string]*corev1.Pod{}}
	c, err := r.Clusters.Client(ctx, q.Cluster)
	if err == nil {
		err = s.read(ctx, c, q)
	}
	if fault.KindOf(err) == fault.Unreachable {
		s.Problem = problemText(err, "the workload cluster does not respond")
		return s, nil
	}
	if isServerError(err) {
		s.Problem = "The API server responds with an error: " + fault.UserMessage(err)
		return s, nil
	}
	if err != nil {
		return s, err
	}
	s.Expiry = r.readExpiry(ctx, s, q.Certificates)
	if q.Managed && s.Initialized {
		s.Etcd = r.readEtcd(ctx, s, q)
		return s, s.readNodesOfMembers(ctx, c)
	}
	return s, nil
}

// isServerError reports whether an API server returned a server error, as it does if etcd has no quorum.
func isServerError(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError
}

func problemText(err error, otherwise string) string {
	if f := fault.As(err); f != nil {
		return f.Message
	}
	return otherwise
}

// read reads kubeadm's configuration, the Pods of the control plane and the Nodes from the API server.
func (s *State) read(ctx context.Context, c client.Client, q ReadRequest) error {
	config := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: configName}, config)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading ConfigMap %s: %w", configName, err)
	}
	s.Initialized = err == nil
	if !s.Initialized {
		return nil
	}
	pods := &corev1.PodList{}
	if err := c.List(ctx, pods, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{"tier": "control-plane"}); err != nil {
		return fmt.Errorf("listing the Pods of the control plane: %w", err)
	}
	for i := range pods.Items {
		s.Pods[pods.Items[i].Name] = &pods.Items[i]
	}
	for _, name := range slices.Concat(q.Nodes, q.Leaving, q.Others, s.unclaimed(q)) {
		if err := s.readNode(ctx, c, name); err != nil {
			return err
		}
	}
	return nil
}

// mostUnclaimed limits the number of Nodes that are read in addition to the Nodes of Machines.
const mostUnclaimed = 16

// unclaimed returns the Nodes with a static Pod of etcd that no Machine references. They may belong to a Machine
// whose Node is unknown.
func (s State) unclaimed(q ReadRequest) []string {
	known := slices.Concat(q.Nodes, q.Leaving)
	var out []string
	for _, pod := range slices.Sorted(maps.Keys(s.Pods)) {
		node, is := strings.CutPrefix(pod, etcdPod+"-")
		if q.Managed && is && node != "" && len(out) < mostUnclaimed && !slices.Contains(known, node) {
			out = append(out, node)
		}
	}
	return out
}

func (s *State) readNode(ctx context.Context, c client.Client, name string) error {
	s.ReadNodes[name] = true
	node := &corev1.Node{}
	err := c.Get(ctx, client.ObjectKey{Name: name}, node)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading Node %s: %w", name, err)
	}
	s.Nodes[name] = node
	return nil
}

func (s *State) readNodesOfMembers(ctx context.Context, c client.Client) error {
	for _, m := range s.Etcd.Members {
		if _, read := s.Nodes[m.Name]; !read && m.Name != "" {
			if err := s.readNode(ctx, c, m.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// readyNodes returns the nodes that are ready. Pods of other nodes cannot be reached through their kubelet.
func (s State) readyNodes(nodes []string) []string {
	return slices.DeleteFunc(slices.Clone(nodes), func(name string) bool {
		node := s.Nodes[name]
		return node == nil || !slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
	})
}

// readExpiry reads the certificates of running API servers concurrently. Failed reads are retried at the next read.
func (r Reader) readExpiry(ctx context.Context, s State, servers []ExpiryServer) map[string]time.Time {
	servers = slices.DeleteFunc(slices.Clone(servers), func(server ExpiryServer) bool {
		pod := s.PodOf(apiServerPod, server.Node)
		return pod == nil || pod.Status.Phase != corev1.PodRunning || len(s.readyNodes([]string{server.Node})) == 0
	})
	read := make([]time.Time, len(servers))
	var all fault.Group
	for i, server := range servers {
		all.Go(func() (err error) {
			read[i], err = r.Certificates.Expiry(ctx, server)
			return err
		})
	}
	if err := all.Wait(); err != nil {
		log.FromContext(ctx).V(1).Info("reading a certificate failed", "reason", err.Error())
	}
	out := map[string]time.Time{}
	for i, server := range servers {
		if !read[i].IsZero() {
			out[server.Node] = read[i]
		}
	}
	return out
}

// readEtcd reads the state of the etcd members. If the membership changes during the read, the read is repeated once,
// because otherwise the statuses would refer to different memberships.
func (r Reader) readEtcd(ctx context.Context, s State, q ReadRequest) Etcd {
	out := r.readEtcdOnce(ctx, s, q)
	if out.Problem == "" && out.isTorn() {
		out = r.readEtcdOnce(ctx, s, q)
	}
	return out
}

// readEtcdOnce reads the list of members from one of them, and then the status of each member concurrently, even if
// no Machine references its Node. Nodes without a member are skipped, because a call to them would only time out.
// Without quorum there is no agreed list, and the list of a responding member is used.
func (r Reader) readEtcdOnce(ctx context.Context, s State, q ReadRequest) Etcd {
	out := Etcd{Statuses: map[string]EtcdStatus{}}
	nodes := slices.Concat(q.Nodes, q.Leaving, s.unclaimed(q))
	asked := s.readyNodes(nodes)
	for _, node := range nodes {
		out.Statuses[node] = EtcdStatus{Problem: "Node " + node + " is not ready"}
	}
	members, err := r.Members.Etcd(ctx, q.Cluster, asked)
	if err != nil {
		out.Problem = problemText(err, "the etcd members do not respond")
		return out
	}
	if out.Members, err = members.Members(ctx); err != nil {
		out.Problem = problemText(err, "the etcd members do not respond")
		out.readStatuses(ctx, members, asked)
		out.withoutQuorum()
		return out
	}
	asked = slices.DeleteFunc(asked, func(node string) bool {
		_, is := out.Member(node)
		if !is {
			out.Statuses[node] = EtcdStatus{Problem: "Node " + node + " has no etcd member"}
		}
		return !is
	})
	out.readStatuses(ctx, members, asked)
	return out
}

// withoutQuorum uses the list of members of a responding member if no responding member knows a leader.
func (e *Etcd) withoutQuorum() {
	for _, node := range slices.Sorted(maps.Keys(e.Statuses)) {
		switch status := e.Statuses[node]; {
		case status.Problem != "":
		case status.Leader != 0:
			e.Members = nil
			return
		case len(e.Members) == 0:
			e.Members = status.Members
		}
	}
	if len(e.Members) > 0 {
		e.Problem = ""
	}
}

// readStatuses reads the statuses of members concurrently.
func (e *Etcd) readStatuses(ctx context.Context, members etcd.Cluster, asked []string) {
	statuses := make([]EtcdStatus, len(asked))
	var all fault.Group
	for i, node := range asked {
		all.Go(func() error {
			err := fault.Recover(func() (err error) {
				statuses[i].Status, err = members.Status(ctx, node)
				return err
			})
			if err != nil {
				statuses[i].Problem = problemText(err, "the etcd member on Node "+node+" does not respond")
			}
			return nil
		})
	}
	_ = all.Wait() // the functions return no errors
	for i, node := range asked {
		e.Statuses[node] = statuses[i]
	}
}
