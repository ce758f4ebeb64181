package repository

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/version"
)

// MetadataFile is the name of the file with the contracts of the release series.
const MetadataFile = "metadata.yaml"

// metadataAPIVersion is the apiVersion of metadata.yaml.
const metadataAPIVersion = "clusterctl.cluster.x-k8s.io/v1alpha3"

// ReasonMetadata is the reason when metadata.yaml is invalid; Invalid.
const ReasonMetadata = "InvalidMetadata"

// Metadata is the content of metadata.yaml, a file of each provider release that the clusterctl contract defines.
type Metadata struct {
	APIVersion    string          `json:"apiVersion"`
	Kind          string          `json:"kind"`
	ReleaseSeries []ReleaseSeries `json:"releaseSeries"`
}

// ReleaseSeries is the contract of the releases of a minor version. [ParseMetadata] returns it, and [Source.Latest]
// selects a release by it.
type ReleaseSeries struct {
	Major    int32  `json:"major"`
	Minor    int32  `json:"minor"`
	Contract string `json:"contract"`
}

// contractForm matches Kubernetes API versions.
var contractForm = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)

// ParseMetadata parses the metadata.yaml of a release; of is the name of the release in errors. The Invalid fault lists
// all problems that make the file unusable. Other problems that [LintMetadata] reports do not prevent the installation.
// [Source.Latest], [Source.Metadata] and package lint call it.
func ParseMetadata(data []byte, of string) (Metadata, error) {
	var m Metadata
	if err := yaml.Unmarshal(data, &m); err != nil {
		return Metadata{}, fault.New(fault.Invalid, ReasonMetadata, "metadata.yaml of %s cannot be parsed: %v; correct it", of, err)
	}
	if problems := m.problems(); len(problems) > 0 {
		return Metadata{}, fault.New(fault.Invalid, ReasonMetadata, "metadata.yaml of %s is not valid: %s; correct it", of, strings.Join(problems, "; "))
	}
	return m, nil
}

// LintMetadata lists all problems of metadata.yaml, including those that clusterctl ignores: unknown and repeated
// fields, a missing kind, a duplicate series. Package lint calls it.
func LintMetadata(data []byte) []string {
	var m Metadata
	var problems []string
	if err := yaml.UnmarshalStrict(data, &m); err != nil {
		problems = append(problems, err.Error())
		if yaml.Unmarshal(data, &m) != nil {
			return problems
		}
	}
	if m.Kind == "" {
		problems = append(problems, "kind is not set; set it to Metadata")
	}
	seen := map[[2]int32]bool{}
	for i, s := range m.ReleaseSeries {
		if seen[[2]int32{s.Major, s.Minor}] {
			problems = append(problems, fmt.Sprintf("releaseSeries[%d]: %d.%d is listed twice", i, s.Major, s.Minor))
		}
		seen[[2]int32{s.Major, s.Minor}] = true
	}
	return append(problems, m.problems()...)
}

// problems returns the problems that make the metadata unusable. A missing kind is accepted, because published releases
// omit it.
func (m Metadata) problems() []string {
	var out []string
	if m.APIVersion != metadataAPIVersion {
		out = append(out, fmt.Sprintf("apiVersion is %q, not %s", m.APIVersion, metadataAPIVersion))
	}
	if m.Kind != "" && m.Kind != "Metadata" {
		out = append(out, fmt.Sprintf("kind is %q, not Metadata", m.Kind))
	}
	if len(m.ReleaseSeries) == 0 {
		out = append(out, "releaseSeries is empty")
	}
	contracts := map[[2]int32]string{}
	for i, s := range m.ReleaseSeries {
		if s.Major < 0 || s.Minor < 0 {
			out = append(out, fmt.Sprintf("releaseSeries[%d]: %d.%d is not a version", i, s.Major, s.Minor))
		}
		if !contractForm.MatchString(s.Contract) {
			out = append(out, fmt.Sprintf("releaseSeries[%d].contract is %q, not a version such as %s", i, s.Contract, Contract))
		}
		key := [2]int32{s.Major, s.Minor}
		if before, ok := contracts[key]; ok && before != s.Contract {
			out = append(out, fmt.Sprintf("releaseSeries[%d]: %d.%d has the contract %s and the contract %s", i, s.Major, s.Minor, before, s.Contract))
		}
		contracts[key] = s.Contract
	}
	return out
}

// ForVersion returns the series of a version. Packages install and lint read the contract of a release from it.
func (m Metadata) ForVersion(v version.Version) (ReleaseSeries, bool) {
	i := slices.IndexFunc(m.ReleaseSeries, func(s ReleaseSeries) bool { return release{version: v}.isInSeries(s) })
	if i < 0 {
		return ReleaseSeries{}, false
	}
	return m.ReleaseSeries[i], true
}

// ForContract returns the series with a contract, newest first. [Source.Latest] calls it.
func (m Metadata) ForContract(contract string) []ReleaseSeries {
	out := slices.DeleteFunc(slices.Clone(m.ReleaseSeries), func(s ReleaseSeries) bool { return s.Contract != contract })
	slices.SortFunc(out, func(a, b ReleaseSeries) int {
		return cmp.Or(cmp.Compare(b.Major, a.Major), cmp.Compare(b.Minor, a.Minor))
	})
	return out
}

// Contracts returns the contracts of all series, sorted. [Source.Latest] lists them in its error.
func (m Metadata) Contracts() []string {
	var out []string
	for _, s := range m.ReleaseSeries {
		out = append(out, s.Contract)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
