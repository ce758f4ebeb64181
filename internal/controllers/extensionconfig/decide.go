package extensionconfig

import (
	"bytes"

	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// discover requests the handlers of the extension. The Read function of the controller (observe.go) performs the call.
type discover struct{ Extension string }

func (d discover) String() string { return "which handlers extension " + d.Extension + " has" }

// inject is the action that writes the certificate authority from a Secret to caBundle. act (act.go) runs it.
type inject struct{ Secret string }

func (i inject) String() string {
	return "set caBundle from Secret " + i.Secret + ": its annotation requests it"
}

// endRefresh is the action that removes the annotation that requested a discovery. act (act.go) runs it.
type endRefresh struct{}

func (endRefresh) String() string {
	return "remove annotation " + hook.RefreshAnnotation + ": the status has the result of the discovery"
}

// decide computes the plan for an ExtensionConfig. Package reconciler calls it in each reconciliation, again after a
// discovery that it requests. It is pure: it neither reads nor writes.
//
//	Secret not usable               wait until it changes; the known handlers stay in use
//	caBundle differs from Secret    inject it; the change enqueues the object
//	new spec, discovery is due, or
//	the annotation requests one     discover the handlers, and schedule the next discovery
//	requested discovery is done
//	and reported in the status      remove the annotation, so that its author knows that the status is current
func decide(s snapshot) reconciler.Plan {
	var p reconciler.Plan
	if s.Injection != nil {
		if s.Injection.Problem != "" {
			p.WaitFor("CASecretNotUsable", "%s", s.Injection.Problem).For("Secret", s.Injection.Secret).ToChange("data")
			return p
		}
		if !bytes.Equal(s.Injection.Bundle, s.Config.Spec.ClientConfig.CABundle) {
			p.Do(inject{Secret: s.Injection.Secret})
			return p
		}
	}
	refresh := hook.RefreshRequest(s.Config)
	requested := refresh != "" && refresh != s.State.Refreshed
	if !s.Asked && (s.State.Generation != s.Config.Generation || !s.Now.Before(s.State.Next) || requested) {
		p.Reads = append(p.Reads, discover{Extension: s.Config.Name})
		return p
	}
	if problem := s.State.Problem; problem != nil {
		p.WaitFor(problem.Reason, "%s; %s", problem.Message, retryText).For("ExtensionConfig", s.Config.Name).ForTime()
	}
	if refresh != "" && refresh == s.State.Refreshed && s.reported() {
		p.Do(endRefresh{})
	}
	p.RecheckIn(s.State.Next.Sub(s.Now))
	return p
}
