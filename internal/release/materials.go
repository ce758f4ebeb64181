package release

import (
	"fmt"
	"io"
	"runtime/debug"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// Materials writes the bill of materials of a release as CycloneDX JSON: every Go module that is linked into the
// program. [Write] calls it.
func (p program) Materials(w io.Writer) error {
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{
		Timestamp: p.Time.Format(time.RFC3339),
		Component: &cdx.Component{BOMRef: p.build.Main.Path, Type: cdx.ComponentTypeApplication, Name: "slipway", Version: p.Version, PackageURL: purl(p.build.Main.Path, p.Version)},
	}
	components := []cdx.Component{{BOMRef: "go", Type: cdx.ComponentTypeLibrary, Name: "std", Version: p.build.GoVersion, PackageURL: purl("std", p.build.GoVersion)}}
	used := []string{"go"}
	for _, module := range p.build.Deps {
		m := linked(module)
		components = append(components, cdx.Component{
			BOMRef: m.Path, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: purl(m.Path, m.Version),
		})
		used = append(used, m.Path)
	}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: p.build.Main.Path, Dependencies: &used}}
	if err := cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return fmt.Errorf("writing the bill of materials: %w", err)
	}
	return nil
}

// linked returns the module whose code is in the program. A module that is replaced with a directory of this repository
// retains its name.
func linked(m *debug.Module) *debug.Module {
	if m.Replace != nil && m.Replace.Version != "" {
		return m.Replace
	}
	return m
}

func purl(module, version string) string { return "pkg:golang/" + module + "@" + version }
