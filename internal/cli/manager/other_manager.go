package manager

import (
	"cmp"
	"context"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/internal/manager/webhook"
	"github.com/slipwayhq/slipway/internal/pause"
)

// leaseReadsPerRetry is the number of lease reads per retry period of leader election.
const leaseReadsPerRetry = 4

// checkOtherManager fails if another manager runs the same providers, because both would reconcile every object. The
// manager command calls it before it writes anything.
//
// A manager of the reference implementation is detected by its webhooks, whether it is running or not: while they are
// installed, the API server calls them for each write, so nothing would work without it either. A manager of Slipway is
// detected by webhooks that respond. Managers with leader election, or limited to a namespace or a label, may share a
// cluster. But if the lease is free, a manager that responds does not use leader election. Webhooks behind a Service
// cannot be called from here. Read errors are ignored, because the manager encounters and reports them later.
func checkOtherManager(ctx context.Context, cfg manager.Config) error {
	if cfg.WatchFilter != "" || len(cfg.Namespaces) > 0 {
		return nil
	}
	scheme, err := manager.NewScheme()
	if err != nil {
		return err
	}
	c, err := client.New(cfg.REST, client.Options{Scheme: scheme})
	if err != nil {
		return nil
	}
	if err := checkReference(ctx, c, cfg); err != nil {
		return err
	}
	if cfg.Webhook.CertDir != "" || cfg.LeaderElection.Enabled && !leaseIsFree(ctx, cfg) {
		return nil
	}
	err = checkManagerResponds(ctx, c, cfg)
	if err != nil && cfg.LeaderElection.Enabled && !leaseStaysFree(ctx, cfg) {
		return nil
	}
	return err
}

// leaseStaysFree reports whether the lease remains free for a while. With leader election, another manager acquires it
// after a leader is lost. A lease that is renewed meanwhile is held, regardless of clock differences.
func leaseStaysFree(ctx context.Context, cfg manager.Config) bool {
	retry := cmp.Or(cfg.LeaderElection.Retry, 2*time.Second)
	var before *coordinationv1.LeaseSpec // the first successful read
	for range leaseReadsPerRetry*3 + 1 {
		now, err := readLease(ctx, cfg)
		switch {
		case err != nil: // an unreadable lease counts as free
		case isHeld(now, time.Now()) || before != nil && isRenewed(*before, now):
			return false
		case before == nil:
			before = &now
		}
		if pause.Sleep(ctx, retry/leaseReadsPerRetry) != nil {
			return true
		}
	}
	return true
}

// checkReference fails if Cluster API's own implementation of a provider is installed. Leader election does not help,
// because it uses another lease.
func checkReference(ctx context.Context, c client.Reader, cfg manager.Config) error {
	for _, set := range cfg.Policy.Sets() {
		if set.ReferenceWebhookName == "" {
			continue
		}
		if err := c.Get(ctx, client.ObjectKey{Name: set.ReferenceWebhookName}, &admissionregistrationv1.ValidatingWebhookConfiguration{}); err != nil {
			continue
		}
		flag := "--core cluster-api"
		if kind, ok := strings.CutSuffix(string(set.Name), "-kubeadm"); ok {
			flag = "--" + kind + " kubeadm"
		}
		return fault.New(fault.Invalid, "AnotherManager",
			"provider %s of another implementation is installed in this management cluster: ValidatingWebhookConfiguration %s is there. Two managers would revert each other's writes. Remove that one (clusterctl delete %s: CRDs and objects remain), list with --providers the providers that it does not run, or give each manager objects of its own with --namespace or --watch-filter",
			set.Name, set.ReferenceWebhookName, flag)
	}
	return nil
}

func checkManagerResponds(ctx context.Context, c client.Reader, cfg manager.Config) error {
	silent := map[string]bool{}                                                   // several providers share one address
	for _, p := range webhook.FindCurrentWebhooks(ctx, c, cfg.WebhookAddress()) { // including this manager's address, where it does not serve yet
		if silent[p.Host] {
			continue
		}
		if silent[p.Host] = true; p.Responds(ctx) {
			return fault.New(fault.Invalid, "AnotherManager",
				"another manager runs provider %s of this management cluster: its webhooks respond at %s, with the certificate that the API server expects. Stop that manager first, start both with --leader-elect, list with --providers the providers that it does not run, or give each objects of its own with --namespace or --watch-filter", p.Set.Name, p.Host)
		}
	}
	return nil
}

// leaseIsFree reports whether there is no lease or it has expired. If the lease cannot be read, it returns false.
func leaseIsFree(ctx context.Context, cfg manager.Config) bool {
	lease, err := readLease(ctx, cfg)
	return err == nil && !isHeld(lease, time.Now())
}

// readLease returns the lease, or an empty one if it does not exist.
func readLease(ctx context.Context, cfg manager.Config) (coordinationv1.LeaseSpec, error) {
	api, err := kubernetes.NewForConfig(cfg.REST)
	if err != nil {
		return coordinationv1.LeaseSpec{}, err
	}
	key := cfg.Lease()
	lease, err := api.CoordinationV1().Leases(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return coordinationv1.LeaseSpec{}, nil
	}
	if err != nil {
		return coordinationv1.LeaseSpec{}, err
	}
	return lease.Spec, nil
}

// isRenewed reports whether the holder renewed the lease between two reads.
func isRenewed(before, after coordinationv1.LeaseSpec) bool {
	return ptr.Deref(after.HolderIdentity, "") != "" && after.RenewTime != nil && !after.RenewTime.Equal(before.RenewTime)
}

// isHeld reports whether the lease has a holder and has not expired.
func isHeld(l coordinationv1.LeaseSpec, now time.Time) bool {
	if ptr.Deref(l.HolderIdentity, "") == "" || l.RenewTime == nil {
		return false
	}
	return now.Before(l.RenewTime.Add(time.Duration(ptr.Deref(l.LeaseDurationSeconds, 0)) * time.Second))
}
