package contract

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gobuffalo/flect"
	"k8s.io/apimachinery/pkg/version"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Version is a version of the contract between the core and its providers.
type Version string

const (
	// V1Beta1 is the older contract; Cluster API v1.16 removes it.
	V1Beta1 Version = "v1beta1"
	// V1Beta2 is the contract of Cluster API v1.11 and later.
	V1Beta2 Version = "v1beta2"
)

// Versions returns the supported contract versions, the preferred one first.
func Versions() []Version { return []Version{V1Beta2, V1Beta1} }

// labelPrefix is the prefix of the CRD labels that list the API versions for a contract version.
const labelPrefix = "cluster.x-k8s.io/"

// Label returns the name of the CRD label for a contract version.
func (v Version) Label() string { return labelPrefix + string(v) }

// Resolve returns the newest contract version of a CRD with these labels, and its API version: the newest one that the
// label lists.
func Resolve(crdName string, labels map[string]string) (Version, string, error) {
	for _, v := range Versions() {
		value := labels[v.Label()]
		if value == "" {
			continue
		}
		served := strings.Split(value, "_")
		return v, slices.MaxFunc(served, version.CompareKubeAwareVersionStrings), nil
	}
	return "", "", fmt.Errorf("CRD %s has no label %s or %s: its provider must set one to the API versions that fulfil the contract",
		crdName, V1Beta2.Label(), V1Beta1.Label())
}

// Fulfilling returns the API versions of a CRD with these labels that comply with a contract version, newest first.
// Callers use the newest one that is served.
func Fulfilling(labels map[string]string, v Version) []string {
	value := labels[v.Label()]
	if value == "" {
		return nil
	}
	all := strings.Split(value, "_")
	slices.SortFunc(all, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	return all
}

// FulfilledBy returns the newest contract version that an API version complies with, for example for v1beta1 of a CRD
// whose newest API version complies with a newer contract.
func FulfilledBy(crdName string, labels map[string]string, apiVersion string) (Version, error) {
	for _, v := range Versions() {
		if slices.Contains(strings.Split(labels[v.Label()], "_"), apiVersion) {
			return v, nil
		}
	}
	return "", fmt.Errorf("API version %s of CRD %s fulfils no contract that is known here: use one that a label %s or %s of the CRD names",
		apiVersion, crdName, V1Beta2.Label(), V1Beta1.Label())
}

// CRDName returns the required name of a kind's CRD, with which the CRD is found without discovery.
func CRDName(group, kind string) string {
	return strings.ToLower(flect.Pluralize(kind)) + "." + group
}

// CRDNameOf returns the name of the CRD for a reference.
func CRDNameOf(ref clusterv1.ContractVersionedObjectReference) string {
	return CRDName(ref.APIGroup, ref.Kind)
}
