package extensionconfig

import (
	"bytes"

	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/loop"
)

// Discover is the question which handlers the extension has.
type Discover struct{ Extension string }

// String says what is to be found out.
func (d Discover) String() string { return "which handlers extension " + d.Extension + " has" }

// Inject is the action that writes the authority of a Secret into caBundle.
type Inject struct{ Secret string }

// String says what is done and why.
func (i Inject) String() string {
	return "set caBundle from Secret " + i.Secret + ": the annotation asks for it"
}

// EndRefresh is the action that removes the annotation by which a discovery was requested.
type EndRefresh struct{}

// String says what is done and why.
func (EndRefresh) String() string {
	return "remove annotation " + hook.RefreshAnnotation + ": the status says what the discovery found"
}

// Decide says what to do about an ExtensionConfig.
//
//	Secret not usable              wait; its watch enqueues it. The handlers known so far stay
//	caBundle is not the Secret's   inject; the change enqueues it
//	new spec, it is time, or
//	the annotation requests it     ask for the handlers; when to ask again is in the answer
//	the annotation's discovery is
//	done and in the status         remove the annotation: who set it reads the status then
func Decide(s Snapshot) loop.Plan {
	var p loop.Plan
	if s.Injection != nil {
		if s.Injection.Problem != "" {
			p.WaitFor("CASecretNotUsable", "%s", s.Injection.Problem).For("Secret", s.Injection.Secret).ToChange("data")
			return p
		}
		if !bytes.Equal(s.Injection.Bundle, s.Config.Spec.ClientConfig.CABundle) {
			p.Do(Inject{Secret: s.Injection.Secret})
			return p
		}
	}
	refresh := hook.RefreshOf(s.Config)
	requested := refresh != "" && refresh != s.State.Refreshed
	if !s.Asked && (s.State.Generation != s.Config.Generation || !s.Now.Before(s.State.Next) || requested) {
		p.Ask = append(p.Ask, Discover{Extension: s.Config.Name})
		return p
	}
	if problem := s.State.Problem; problem != nil {
		p.WaitFor(problem.Reason, "%s; %s", problem.Message, again).For("ExtensionConfig", s.Config.Name).ForTime()
	}
	if refresh != "" && refresh == s.State.Refreshed && s.reported() {
		p.Do(EndRefresh{})
	}
	p.RecheckIn(s.State.Next.Sub(s.Now))
	return p
}
