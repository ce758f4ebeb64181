package repository

import (
	"context"
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/version"
)

// Contract is the Cluster API contract that this build implements; providers are selected by it.
const Contract = "v1beta2"

// CompatibleContracts returns the provider contracts that are compatible with core components of the given contract,
// best first. The checks of installations and upgrades call it.
func CompatibleContracts(contract string) []string {
	if contract == "v1beta2" {
		return []string{"v1beta2", "v1beta1"}
	}
	return []string{contract}
}

// maxTagsWithoutRelease is the maximum number of tags without files that the search for a release skips.
const maxTagsWithoutRelease = 5

// release is a tag with a semantic version. [Source.Latest] selects one.
type release struct {
	tag     string
	version version.Version
}

// semantic returns the tags with semantic versions, highest first, with releases before pre-releases.
func semantic(tags []string) []release {
	var out []release
	for _, tag := range tags {
		if v, err := version.ParseSemantic(tag); err == nil && isSegment(tag) {
			out = append(out, release{tag, v})
		}
	}
	slices.SortFunc(out, func(a, b release) int {
		if pre := (len(a.version.Pre) > 0) != (len(b.version.Pre) > 0); pre {
			return map[bool]int{true: 1, false: -1}[len(a.version.Pre) > 0]
		}
		if c := b.version.Compare(a.version); c != 0 {
			return c
		}
		return strings.Compare(b.tag, a.tag)
	})
	return slices.CompactFunc(out, func(a, b release) bool { return a.tag == b.tag })
}

// isSemantic reports whether a text is a semantic version, with or without the prefix v. Repositories recognize a
// version in their URL with it.
func isSemantic(text string) bool {
	_, err := version.ParseSemantic(text)
	return err == nil
}

// Latest returns the latest release with the contract, or with a compatible one, by the rules in the package
// documentation. The metadata.yaml of the newest release determines the series, because it also lists the earlier ones.
// [Source.Version] calls it for "latest". Package install calls it for upgrades.
func (s *Source) Latest(ctx context.Context, contract string) (string, error) {
	all, err := s.all(ctx)
	if err != nil {
		return "", err
	}
	releases := semantic(all)
	newest, metadata, err := s.newest(ctx, releases)
	if err != nil {
		return "", err
	}
	for _, wanted := range CompatibleContracts(contract) {
		series := metadata.ForContract(wanted)
		if slices.ContainsFunc(series, newest.isInSeries) {
			return newest.tag, nil
		}
		for _, one := range series {
			candidates := slices.DeleteFunc(slices.Clone(releases), func(r release) bool { return !r.isInSeries(one) })
			if found, _, err := s.newest(ctx, candidates); err == nil {
				return found.tag, nil
			} else if fault.KindOf(err) != fault.Invalid {
				return "", err
			}
		}
	}
	return "", fault.New(fault.Invalid, ReasonNoVersion, "provider %s has no release with a contract that is compatible with %s; the contracts of its releases are: %s; specify a version",
		s.provider.Label(), contract, strings.Join(metadata.Contracts(), ", "))
}

// isInSeries reports whether the release belongs to the series.
func (r release) isInSeries(s ReleaseSeries) bool {
	return uint64(s.Major) == r.version.Major && uint64(s.Minor) == r.version.Minor
}

// newest returns the first release that has files, with its metadata. A tag can exist some time before its files are
// uploaded.
func (s *Source) newest(ctx context.Context, releases []release) (release, Metadata, error) {
	for _, r := range releases[:min(maxTagsWithoutRelease, len(releases))] {
		data, err := s.repositoryFile(ctx, r.tag, MetadataFile)
		if fault.KindOf(err) == fault.Gone {
			continue
		}
		if err != nil {
			return release{}, Metadata{}, err
		}
		metadata, err := ParseMetadata(data, s.provider.Label()+" "+r.tag)
		return r, metadata, err
	}
	return release{}, Metadata{}, fault.New(fault.Invalid, ReasonNoVersion,
		"provider %s has no release with a semantic version and a file metadata.yaml; specify a version, or check the url of the provider", s.provider.Label())
}
