package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/internal/operate/progress"
	"github.com/slipwayhq/slipway/internal/pause"
)

// Manager is the name of the field manager without its prefix; see [FieldManager].
const Manager = "clusterctl"

const (
	// maxAttempts is the maximum number of attempts for a step with a temporary failure.
	maxAttempts = 8
	// firstPause is the delay before the first retry; it doubles with each retry.
	firstPause = 250 * time.Millisecond
	// poll is the polling interval.
	poll = 250 * time.Millisecond
	// serveTimeout is the timeout for a CRD to be served, and for an object to be deleted.
	serveTimeout = 2 * time.Minute
)

// reasonStep is the reason when a step failed. The fault has the kind of the cause.
const reasonStep = "InstallationIncomplete"

// Runner executes plans: of "slipway init", "delete" and "upgrade apply", and of the CRDs that `slipway up` installs.
type Runner struct {
	Client client.Client
	// Certify issues certificates for cert-manager objects. The commands set it to the function Reconcile of package
	// certificates, which imports this package. It may be nil for plans without such objects.
	Certify func(ctx context.Context) error
	// Timeout is the total timeout for the Deployments of a plan to become available.
	Timeout time.Duration
	// Pause waits; nil means real time.
	Pause func(ctx context.Context, d time.Duration) error
	// Progress displays the progress; it may be nil.
	Progress progress.Reporter
}

// Run executes a plan. The error contains the failed step. The same plan can be run again. `slipway init`, `slipway
// delete` and `slipway upgrade apply` call it unless --dry-run is set.
func (r Runner) Run(ctx context.Context, p Plan) error {
	if r.Pause == nil {
		r.Pause = pause.Sleep
	}
	w := kube.NewWriter(r.Client, Manager)
	waits := time.Duration(0)
	if err := r.checkNodes(ctx, p.Steps); err != nil {
		return err
	}
	for n, s := range p.Steps {
		r.show(p.Steps, n)
		err := r.retry(ctx, func() error { return r.step(ctx, w, s, &waits) })
		if err != nil {
			return incomplete(s, n, len(p.Steps), err)
		}
	}
	r.show(p.Steps, len(p.Steps))
	return nil
}

// incomplete adds the failed step to an error.
func incomplete(s Step, n, all int, err error) error {
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("at step %d of %d, %s: %w; run the same command again to complete it", n+1, all, s, err)
	}
	return fault.New(fault.KindOf(err), reasonStep, "step %d of %d, %s: %s; run the same command again to complete the remaining steps",
		n+1, all, s, fault.UserMessage(err)).From(err)
}

// retry retries temporary failures with an exponential backoff.
func (r Runner) retry(ctx context.Context, do func() error) error {
	wait := firstPause
	for n := 1; ; n++ {
		err := do()
		if err == nil || n == maxAttempts || !isTemporary(err) {
			return err
		}
		if err := r.Pause(ctx, wait); err != nil {
			return err
		}
		wait *= 2
	}
}

// isTemporary reports whether a retry may succeed: the API server is overloaded or unreachable, another client has
// written the object, or discovery does not include a new kind yet.
func isTemporary(err error) bool {
	if errors.Is(err, context.Canceled) || fault.As(err) != nil {
		return fault.KindOf(err) == fault.Conflict
	}
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return true
	}
	return slices.Contains([]fault.Kind{fault.Transient, fault.Conflict, fault.Unreachable}, fault.KindOf(err))
}

func (r Runner) step(ctx context.Context, w *kube.Writer, s Step, waits *time.Duration) error {
	switch s.Verb {
	case Apply:
		return r.apply(ctx, w, s.Object)
	case Delete:
		return r.delete(ctx, w, s.Object)
	case Stop:
		return r.stop(ctx, w, s.Object)
	case Serve:
		return r.awaitServed(ctx, s.Object)
	case Migrate:
		return migrate(ctx, r.Client, s.Object.GetName())
	case Await:
		return r.awaitAvailable(ctx, s, waits)
	case Accept:
		return r.awaitAccepted(ctx, w, s)
	case certify:
		return r.Certify(ctx)
	}
	return fault.New(fault.Bug, reasonStep, "unknown step %q", s.Verb)
}

// HasReason reports whether a fault in the chain of an error has the reason. `slipway upgrade apply` calls it to decide
// whether to roll back.
func HasReason(err error, reason string) bool {
	for known := fault.As(err); known != nil; known = fault.As(known.Cause) {
		if known.Reason == reason {
			return true
		}
	}
	return false
}

func (r Runner) read(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(o.GroupVersionKind())
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(o), live)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil //nolint:nilnil // nothing is there
	}
	return live, err
}

// apply creates or updates an object. If an immutable field differs, the object is deleted and created again, for kinds
// where this loses no data.
func (r Runner) apply(ctx context.Context, w *kube.Writer, want *unstructured.Unstructured) error {
	live, err := r.read(ctx, want)
	if err != nil {
		return err
	}
	want = asStored(want)
	if live == nil {
		return w.Apply(ctx, nil, want)
	}
	if !live.GetDeletionTimestamp().IsZero() {
		if err := r.awaitDeleted(ctx, want); err != nil {
			return err
		}
		return w.Apply(ctx, nil, want)
	}
	if takeOver := fieldManagerMigration(); takeOver.HasChanges(live) {
		if err := w.TransferOwnership(ctx, live, takeOver); err != nil {
			return err
		}
		if live, err = r.read(ctx, want); err != nil || live == nil {
			return errors.Join(err, fault.New(fault.Conflict, reasonStep, "%s %s was deleted concurrently", want.GetKind(), want.GetName()))
		}
	}
	err = w.Apply(ctx, live, want)
	if !apierrors.IsInvalid(err) || !slices.Contains(replaceable(), want.GetKind()) {
		return err
	}
	if err := r.delete(ctx, w, want); err != nil {
		return err
	}
	return w.Apply(ctx, nil, want)
}

// FieldManager is the complete name of the field manager of the installed objects. Installed management clusters have
// it, so it must not change.
const FieldManager = kube.ManagerPrefix + Manager

// fieldManagerMigration returns the migration of clusterctl's field managers. Without it, fields that a later version
// no longer sets would remain.
func fieldManagerMigration() kube.OwnershipTransfer {
	return kube.OwnershipTransfer{From: []string{"clusterctl"}, To: FieldManager, Takes: func(fieldpath.Path) bool { return true }}
}

// replaceable are the kinds with immutable fields whose objects can be recreated without data loss.
func replaceable() []string {
	return []string{"Deployment", "DaemonSet", "StatefulSet", "Job", "ClusterRoleBinding", "RoleBinding", "Service", "Pod"}
}

func (r Runner) delete(ctx context.Context, w *kube.Writer, o *unstructured.Unstructured) error {
	live, err := r.read(ctx, o)
	if err != nil || live == nil {
		return err
	}
	if err := w.DeleteAnyway(ctx, live); err != nil {
		return err
	}
	return r.awaitDeleted(ctx, o)
}

// awaitDeleted waits until an object is deleted.
func (r Runner) awaitDeleted(ctx context.Context, o *unstructured.Unstructured) error {
	return r.pollUntilEmpty(ctx, serveTimeout, func() (string, error) {
		live, err := r.read(ctx, o)
		if err != nil || live == nil {
			return "", err
		}
		return fmt.Sprintf("%s %s is still being deleted (finalizers: %v)", o.GetKind(), o.GetName(), live.GetFinalizers()), nil
	})
}

// pollUntilEmpty polls until look returns an empty string. After the timeout, the result of look is the error.
func (r Runner) pollUntilEmpty(ctx context.Context, timeout time.Duration, look func() (string, error)) error {
	for spent := time.Duration(0); ; spent += poll {
		waits, err := look()
		if err != nil || waits == "" {
			return err
		}
		if spent >= timeout {
			return fault.New(fault.Transient, progress.ReasonTimeout, "timed out after %s: %s", timeout, waits)
		}
		if err := r.Pause(ctx, poll); err != nil {
			return err
		}
	}
}

// awaitServed waits until the kinds of a CRD are served.
func (r Runner) awaitServed(ctx context.Context, o *unstructured.Unstructured) error {
	return r.pollUntilEmpty(ctx, serveTimeout, func() (string, error) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(o), crd); err != nil {
			return "", err
		}
		for _, c := range crd.Status.Conditions {
			if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
				return "", nil
			}
			if c.Type == apiextensionsv1.NamesAccepted && c.Status == apiextensionsv1.ConditionFalse {
				return "", fault.New(fault.Invalid, reasonCRDName, "the names of CRD %s conflict with another CRD: %s; delete the other CRD", crd.Name, c.Message)
			}
		}
		return "CRD " + crd.Name + " is not served yet", nil
	})
}

// stop sets the replicas of a Deployment to zero.
func (r Runner) stop(ctx context.Context, w *kube.Writer, o *unstructured.Unstructured) error {
	live, err := r.read(ctx, o)
	if err != nil || live == nil {
		return err
	}
	return w.Patch(ctx, live, func(o client.Object) {
		if u, ok := o.(*unstructured.Unstructured); ok {
			u = u.DeepCopy()
			_ = unstructured.SetNestedField(u.Object, int64(0), "spec", "replicas") // a Deployment has a spec
			o.(*unstructured.Unstructured).Object = u.Object
		}
	})
}

// show reports the progress by provider.
func (r Runner) show(all []Step, done int) {
	if r.Progress == nil {
		return
	}
	var out []progress.Step
	for n, s := range all {
		name := s.Provider
		if name == "" {
			name = "management cluster"
		}
		i := slices.IndexFunc(out, func(p progress.Step) bool { return p.Name == name })
		if i < 0 {
			out = append(out, progress.Step{Name: name, Done: true, DoneWhen: "its objects are deleted"})
			i = len(out) - 1
		}
		if s.Verb != Delete && s.Verb != Stop {
			out[i].DoneWhen = "its objects exist"
		}
		if n >= done && out[i].Done {
			out[i].Done, out[i].Detail = false, s.String()
		}
	}
	r.Progress.Show(out)
}

// migrate rewrites every object of a CRD in the current storage version, so that a later CRD may omit earlier versions.
func migrate(ctx context.Context, c client.Client, name string) error {
	access := map[string]crds.Access{name: {Reader: c, Client: c}}
	return crds.NewMigrator(c, c, access, nil).Migrate(ctx, logr.Discard())
}
