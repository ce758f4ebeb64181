package installation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/slipwayhq/slipway/internal/clusterctl/progress"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/pause"
)

// Manager is the field manager of what is installed, after the prefix that all have.
const Manager = "clusterctl"

const (
	// tries is how often a step that fails for a reason that may pass is tried.
	tries = 8
	// firstPause is the time before the second try; each later one is twice as long.
	firstPause = 250 * time.Millisecond
	// poll is the time between two reads while a step waits.
	poll = 250 * time.Millisecond
	// serveTimeout is how long a CRD may take to be served, and an object to be gone.
	serveTimeout = 2 * time.Minute
)

// ReasonStep says that a step was not supported out; its kind is that of the cause.
const ReasonStep = "InstallationIncomplete"

// Runner carries out plans.
type Runner struct {
	Client client.Client
	// Certify issues certificates for objects of cert-manager.
	Certify func(ctx context.Context) error
	// Timeout is how long all Deployments of a plan may take to be available.
	Timeout time.Duration
	// Pause waits; nil: real time.
	Pause func(ctx context.Context, d time.Duration) error
	// Progress is shown here; nil: nowhere.
	Progress progress.Reporter
}

// Run carries out a plan. The error says how far it came; the same plan may be run again.
func (r Runner) Run(ctx context.Context, p Plan) error {
	if r.Pause == nil {
		r.Pause = pause.For
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

// incomplete says at which step a plan has ended.
func incomplete(s Step, n, all int, err error) error {
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("at step %d of %d, %s: %w; run the same command again to complete it", n+1, all, s, err)
	}
	return fault.New(fault.KindOf(err), ReasonStep, "step %d of %d, %s: %s; run the same command again to complete what remains",
		n+1, all, s, fault.UserMessage(err)).From(err)
}

// retry repeats what fails for a reason that may pass.
func (r Runner) retry(ctx context.Context, do func() error) error {
	wait := firstPause
	for n := 1; ; n++ {
		err := do()
		if err == nil || n == tries || !mayPass(err) {
			return err
		}
		if err := r.Pause(ctx, wait); err != nil {
			return err
		}
		wait *= 2
	}
}

// mayPass reports whether the next try may have another outcome: the API server is busy or not reachable, another program
// wrote the object, or discovery does not know a kind yet that was just defined.
func mayPass(err error) bool {
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
		return r.serve(ctx, s.Object)
	case Migrate:
		return migrate(ctx, r.Client, s.Object.GetName())
	case Await:
		return r.await(ctx, s, waits)
	case Accept:
		return r.accept(ctx, w, s)
	case Certify:
		return r.Certify(ctx)
	}
	return fault.New(fault.Bug, ReasonStep, "step %q is not known", s.Verb)
}

// HasReason reports whether a fault in the chain of an error has the reason.
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

// apply creates or changes an object. One of whose fields cannot change is deleted and created again, where that loses nothing.
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
		if err := r.gone(ctx, want); err != nil {
			return err
		}
		return w.Apply(ctx, nil, want)
	}
	if takeOver := takeOver(); takeOver.Moves(live) {
		if err := w.HandOver(ctx, live, takeOver); err != nil {
			return err
		}
		if live, err = r.read(ctx, want); err != nil || live == nil {
			return errors.Join(err, fault.New(fault.Conflict, ReasonStep, "%s %s was deleted meanwhile", want.GetKind(), want.GetName()))
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

// FieldManager is the field manager of what is installed.
const FieldManager = kube.Prefix + Manager

// takeOver is of what clusterctl has installed: without it, what a later version does not have any more would stay.
func takeOver() kube.HandOver {
	return kube.HandOver{From: []string{"clusterctl"}, To: FieldManager, Takes: func(fieldpath.Path) bool { return true }}
}

// replaceable are the kinds with fields that cannot change, whose objects can be created again as they were.
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
	return r.gone(ctx, o)
}

// gone waits until an object is gone.
func (r Runner) gone(ctx context.Context, o *unstructured.Unstructured) error {
	return r.until(ctx, serveTimeout, func() (string, error) {
		live, err := r.read(ctx, o)
		if err != nil || live == nil {
			return "", err
		}
		return fmt.Sprintf("%s %s is being deleted and still there (finalizers: %v)", o.GetKind(), o.GetName(), live.GetFinalizers()), nil
	})
}

// until reads until nothing is to be waited for. What is, is the error when the time is over.
func (r Runner) until(ctx context.Context, timeout time.Duration, look func() (string, error)) error {
	for spent := time.Duration(0); ; spent += poll {
		waits, err := look()
		if err != nil || waits == "" {
			return err
		}
		if spent >= timeout {
			return fault.New(fault.Transient, progress.ReasonTimeout, "after %s, %s", timeout, waits)
		}
		if err := r.Pause(ctx, poll); err != nil {
			return err
		}
	}
}

// serve waits until the kinds of a CRD are served.
func (r Runner) serve(ctx context.Context, o *unstructured.Unstructured) error {
	return r.until(ctx, serveTimeout, func() (string, error) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(o), crd); err != nil {
			return "", err
		}
		for _, c := range crd.Status.Conditions {
			if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
				return "", nil
			}
			if c.Type == apiextensionsv1.NamesAccepted && c.Status == apiextensionsv1.ConditionFalse {
				return "", fault.New(fault.Invalid, ReasonCRDName, "the names of CRD %s are taken: %s; delete the CRD that has them", crd.Name, c.Message)
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
			_ = unstructured.SetNestedField(u.Object, int64(0), "spec", "replicas") // a Deployment has a specification
			o.(*unstructured.Unstructured).Object = u.Object
		}
	})
}

// show tells the progress by provider.
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
			out = append(out, progress.Step{Name: name, Done: true, Ends: "its objects are gone"})
			i = len(out) - 1
		}
		if s.Verb != Delete && s.Verb != Stop {
			out[i].Ends = "its objects are there"
		}
		if n >= done && out[i].Done {
			out[i].Done, out[i].Detail = false, s.String()
		}
	}
	r.Progress.Show(out)
}
