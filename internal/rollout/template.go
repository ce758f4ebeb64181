package rollout

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/naming"
)

// relevant is the part of a machine template that an existing Machine cannot take over: all else is propagated in place, see
// [InPlace].
type relevant struct {
	Version       string
	FailureDomain string
	Infra         clusterv1.ContractVersionedObjectReference
	Bootstrap     clusterv1.ContractVersionedObjectReference
	DataSecret    string
}

func relevantOf(t clusterv1.MachineTemplateSpec) relevant {
	r := relevant{
		Version: t.Spec.Version, FailureDomain: t.Spec.FailureDomain,
		Infra: t.Spec.InfrastructureRef, Bootstrap: t.Spec.Bootstrap.ConfigRef,
	}
	// With a bootstrap config the name of the Secret is what the config made, not what was asked for.
	if !r.Bootstrap.IsDefined() && t.Spec.Bootstrap.DataSecretName != nil {
		r.DataSecret = *t.Spec.Bootstrap.DataSecretName
	}
	return r
}

// InPlace is the wanted template for Machines that were made from another one: with what they cannot take over as they have it.
func InPlace(have, want clusterv1.MachineTemplateSpec) clusterv1.MachineTemplateSpec {
	t := *want.DeepCopy()
	t.Spec.Version, t.Spec.FailureDomain = have.Spec.Version, have.Spec.FailureDomain
	t.Spec.InfrastructureRef = have.Spec.InfrastructureRef
	t.Spec.Bootstrap = *have.Spec.Bootstrap.DeepCopy()
	return t
}

// Differences says for users in what a MachineSet's (or Machine's) template differs from the wanted one where only
// a new Machine helps, a sentence each, always in the same order. None: it is up to date.
func Differences(have, want clusterv1.MachineTemplateSpec) []string {
	h, w := relevantOf(have), relevantOf(want)
	var out []string
	differ := func(what, have, want string) {
		if have != want {
			out = append(out, fmt.Sprintf("%s %s, %s required", what, orNone(have), orNone(want)))
		}
	}
	differ("Version", h.Version, w.Version)
	differ("Failure domain", h.FailureDomain, w.FailureDomain)
	out = append(out, referenceDiffers("Bootstrap config", h.Bootstrap, w.Bootstrap)...)
	differ("Bootstrap data Secret", h.DataSecret, w.DataSecret)
	return append(out, referenceDiffers("Infrastructure", h.Infra, w.Infra)...)
}

func referenceDiffers(what string, have, want clusterv1.ContractVersionedObjectReference) []string {
	if have == want {
		return nil
	}
	if have.APIGroup == want.APIGroup && have.Kind == want.Kind {
		return []string{fmt.Sprintf("%s %s, %s required", want.Kind, orNone(have.Name), orNone(want.Name))}
	}
	return []string{fmt.Sprintf("%s %s, %s required", what, named(have), named(want))}
}

func named(r clusterv1.ContractVersionedObjectReference) string {
	if !r.IsDefined() {
		return "none"
	}
	return fmt.Sprintf("%s.%s %s", r.Kind, r.APIGroup, r.Name)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// Expired reports whether rollout.after has passed and asks to replace what was created before it. A zero
// after asks for nothing.
func Expired(after, created, now time.Time) bool {
	return !after.IsZero() && !now.Before(after) && created.Before(after)
}

// Hash is the part of the label machine-template-hash that follows from the template: equal for templates
// without Differences.
func Hash(t clusterv1.MachineTemplateSpec) string {
	data, err := json.Marshal(relevantOf(t))
	if err != nil {
		panic("rollout: a struct of strings cannot be encoded: " + err.Error())
	}
	return rand.SafeEncodeString(fmt.Sprint(sum(string(data))))
}

// Suffix is the part of a new MachineSet's name and label that tells it apart from others with the same template: a random part
// that follows from the seed. The same seed gives the same suffix, so that a creation that is repeated after a crash does not
// create a second MachineSet; the seed therefore holds what tells one creation from another.
func Suffix(seed ...string) string {
	n := sum(strings.Join(seed, "\x00"))
	return naming.Random(func(most int) int {
		digit := n % uint64(most)
		n /= uint64(most)
		return int(digit)
	})
}

// sum mixes a text into 64 bits that are all equally good.
func sum(text string) uint64 {
	h := fnv.New128a()
	_, _ = h.Write([]byte(text))
	b := h.Sum(nil)
	return binary.BigEndian.Uint64(b[:8]) ^ binary.BigEndian.Uint64(b[8:])
}
