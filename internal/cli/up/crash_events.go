package up

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/controlplane/managerproc"
	"github.com/slipwayhq/slipway/internal/kube"
)

// Reasons of the Events of an object whose reconciliation crashed the manager.
const (
	reasonCrashed  = "ManagerCrashed"
	reasonSetAside = "SetAside"
)

// maxCrashEvents limits the objects that receive an Event for one crash: if there are many, most are unrelated.
const maxCrashEvents = 10

// recordFailure creates a Warning Event for each object that may have caused a crash of the manager, and for each
// quarantined object, which the manager ignores for some time. [managerRunner.failed] calls it after a crash.
func recordFailure(ctx context.Context, root *rest.Config, f managerproc.Failure) error {
	c, err := client.New(root, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return err
	}
	w := kube.NewWriter(c, "up")
	now := time.Now()
	var errs []error
	for _, s := range f.Suspects[:min(maxCrashEvents, len(f.Suspects))] {
		note := fmt.Sprintf("The manager crashed while it was reconciling this object: %s. The manager is restarted", f.How)
		if s.Work == managerproc.Decoding {
			note = fmt.Sprintf("The manager crashed while it was reading what the API server of this cluster sent: %s. The manager is restarted", f.How)
		}
		errs = append(errs, w.Create(ctx, event(s, now, reasonCrashed, note)))
	}
	for _, a := range f.NewlyQuarantined[:min(maxCrashEvents, len(f.NewlyQuarantined))] {
		note := fmt.Sprintf("Not reconciled until %s, because the manager crashed %d times while it was reconciling this object. "+
			"Change or delete the object; the events with reason %s contain the details", a.Until.UTC().Format(time.RFC3339), a.Failures, reasonCrashed)
		if a.Subject.Work == managerproc.Decoding {
			note = fmt.Sprintf("Not connected to the API server of this cluster until %s, because the manager crashed while it was reading what the server sent "+
				"(crashes: %d). Correct the server that Secret %s-kubeconfig names, or the Secret", a.Until.UTC().Format(time.RFC3339), a.Failures, a.Subject.Name)
		}
		errs = append(errs, w.Create(ctx, event(a.Subject, now, reasonSetAside, note)))
	}
	return errors.Join(errs...)
}

// maxNoteLength is the maximum length that the API server accepts.
const maxNoteLength = 1024

func event(s managerproc.Subject, now time.Time, reason, note string) *eventsv1.Event {
	namespace := s.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: eventName(s.Name, fmt.Sprintf(".%s.%x", strings.ToLower(reason), now.UnixNano()))},
		EventTime:  metav1.NewMicroTime(now), ReportingController: "slipway-up", ReportingInstance: "slipway-up",
		Action: "Reconcile", Reason: reason, Type: corev1.EventTypeWarning, Note: truncate(note, maxNoteLength),
		Regarding: corev1.ObjectReference{
			APIVersion: s.APIVersion, Kind: s.Kind, Namespace: s.Namespace, Name: s.Name, UID: types.UID(s.UID),
		},
	}
}

// eventName returns a valid name for an Event of an object, whose own name may already have the maximum length.
func eventName(object, suffix string) string {
	object = truncate(object, validation.DNS1123SubdomainMaxLength-len(suffix))
	return strings.TrimRight(object, ".-") + suffix
}

// truncate shortens a text to at most limit bytes, without splitting a character.
func truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// capitalize capitalizes the first letter, for the message of [managerRunner.failed].
func capitalize(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
