package up

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
)

// apiTimeout is the timeout of requests to the API; the rest of the status does not need it.
const apiTimeout = 10 * time.Second

// readAPI adds the parts of the status that the API provides, or the reason why it does not respond. The status command
// calls it after [collectStatus].
func (s *statusReport) readAPI(ctx context.Context, e term.Env) {
	asked := make(chan struct{})
	defer func() { <-asked }()
	go func() {
		defer close(asked)
		s.probeManager(ctx)
	}()
	m := s.Management
	if m == nil || s.State == stateStarting && m.ManagerOf == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	c, err := (&management.Flags{DataDir: s.DataDir}).Connect(e)
	if err != nil {
		return // a manager started elsewhere may use a kubeconfig that is not available here
	}
	api, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return
	}
	if _, err := api.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(ctx); err != nil {
		m.Problem = err.Error()
		if errors.Is(err, context.DeadlineExceeded) {
			m.Problem = fmt.Sprintf("not within %s: this host is busy, or the API server hangs", apiTimeout)
			return
		}
		if of := (*url.Error)(nil); errors.As(err, &of) {
			m.Problem = of.Err.Error() // the address is shown anyway
		}
		return
	}
	if m.ManagerOf == "" {
		m.MissingRights, _ = missingRights(ctx, c.Client) // rights that cannot be read are not reported as missing
	}
	if namespace, name, elects := strings.Cut(m.Lease, "/"); elects {
		if lease, err := api.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{}); err == nil {
			m.Leader = ptr.Deref(lease.Spec.HolderIdentity, "")
		}
	}
	var list infrav1.LocalClusterList
	if c.Client.List(ctx, &list, management.ManagedObjectOptions(m.Namespace, m.WatchFilter)...) == nil {
		s.Simulated = countSimulated(list.Items)
	}
}

func countSimulated(clusters []infrav1.LocalCluster) *int {
	n := 0
	for _, c := range clusters {
		if c.Spec.Backend.Simulated != nil {
			n++
		}
	}
	return &n
}
