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

// rolloutFields contains the fields of a Machine template that require a new Machine, as Cluster API defines. All other
// fields are propagated in place, see [InPlaceTemplate]. If a field is added here, later changes of it start rollouts.
type rolloutFields struct {
	Version       string
	FailureDomain string
	Infra         clusterv1.ContractVersionedObjectReference
	Bootstrap     clusterv1.ContractVersionedObjectReference
	DataSecret    string
}

func relevantOf(t clusterv1.MachineTemplateSpec) rolloutFields {
	r := rolloutFields{
		Version: t.Spec.Version, FailureDomain: t.Spec.FailureDomain,
		Infra: t.Spec.InfrastructureRef, Bootstrap: t.Spec.Bootstrap.ConfigRef,
	}
	// With a bootstrap config, the Secret's name is an output of the config and not part of the desired state.
	if !r.Bootstrap.IsDefined() && t.Spec.Bootstrap.DataSecretName != nil {
		r.DataSecret = *t.Spec.Bootstrap.DataSecretName
	}
	return r
}

// InPlaceTemplate returns the desired template for Machines created from another template: fields that require a new
// Machine retain their current values. The MachineDeployment controller calls it for the templates of its existing
// MachineSets.
func InPlaceTemplate(have, want clusterv1.MachineTemplateSpec) clusterv1.MachineTemplateSpec {
	t := *want.DeepCopy()
	t.Spec.Version, t.Spec.FailureDomain = have.Spec.Version, have.Spec.FailureDomain
	t.Spec.InfrastructureRef = have.Spec.InfrastructureRef
	t.Spec.Bootstrap = *have.Spec.Bootstrap.DeepCopy()
	return t
}

// Differences describes, for users, the differences between a MachineSet's or Machine's template and the desired one
// that require a new Machine. The order is stable, with one sentence per difference, in the wording of Cluster API's
// UpToDate condition. The result is empty if the template is up to date; controllers decide with it whether a rollout
// is needed.
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
	return []string{fmt.Sprintf("%s %s, %s required", what, referenceText(have), referenceText(want))}
}

func referenceText(r clusterv1.ContractVersionedObjectReference) string {
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

// Expired reports whether rollout.after has passed and the object was created before it. A zero after never expires.
// [OutdatedReasons], the MachineDeployment and KubeadmControlPlane controllers and `slipway rollout status` call it.
func Expired(after, created, now time.Time) bool {
	return !after.IsZero() && !now.Before(after) && created.Before(after)
}

// Hash returns the template's part of the label machine-template-hash, for the MachineDeployment controller. Templates
// without [Differences] have the same hash. It only names new MachineSets: existing ones are compared with
// [Differences], so another hash function would start no rollout.
func Hash(t clusterv1.MachineTemplateSpec) string {
	data, err := json.Marshal(relevantOf(t))
	if err != nil {
		panic("rollout: a struct of strings cannot be encoded: " + err.Error())
	}
	return rand.SafeEncodeString(fmt.Sprint(hash64(string(data))))
}

// Suffix returns the unique part of a new MachineSet's name and label. It is computed from the seed, so that a
// creation repeated after a crash does not create a second MachineSet. The seed must therefore identify the creation.
// The MachineDeployment controller calls it with the UID, the revision and the [Hash] of the template.
func Suffix(seed ...string) string {
	n := hash64(strings.Join(seed, "\x00"))
	return naming.Random(func(most int) int {
		digit := n % uint64(most)
		n /= uint64(most)
		return int(digit)
	})
}

// hash64 hashes a text to 64 uniformly distributed bits.
func hash64(text string) uint64 {
	h := fnv.New128a()
	_, _ = h.Write([]byte(text))
	b := h.Sum(nil)
	return binary.BigEndian.Uint64(b[:8]) ^ binary.BigEndian.Uint64(b[8:])
}
