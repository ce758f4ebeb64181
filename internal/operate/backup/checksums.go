package backup

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// sums returns the content of SHA256SUMS in an archive: the checksums of the files in the format of sha256sum.
// [Archive.Write] calls it.
func sums(content map[string][]byte) []byte {
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(content)) {
		fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(content[name]), name)
	}
	return out.Bytes()
}

// verifyChecksums verifies the checksums of the files of an archive before it is used. Every file must have a checksum,
// and every checksum a file. [Open] calls it, and [Archive.Save] for the file that it has written.
func verifyChecksums(content map[string][]byte) error {
	text, there := content[sumsFile]
	if !there {
		return damaged("it has no %s", sumsFile)
	}
	known := map[string]bool{sumsFile: true}
	for line := range strings.Lines(string(text)) {
		sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		data, there := content[name]
		switch {
		case !ok || known[name]:
			return damaged("%s cannot be read", sumsFile)
		case !there:
			return damaged("%s is missing", name)
		case fmt.Sprintf("%x", sha256.Sum256(data)) != sum:
			return damaged("%s is not as it was written", name)
		}
		known[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(content)) {
		if !known[name] {
			return damaged("%s has no checksum", name)
		}
	}
	return nil
}
