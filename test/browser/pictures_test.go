package browser

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

const (
	docs = "../../docs"
	// maxPicture is the maximum size of a picture in bytes, because everybody who clones the repository gets it.
	maxPicture = 200_000
)

// The pictures of docs/ui.md are of these pages. The flag -update writes them.
func TestPictures(t *testing.T) {
	p := serve(t, demo(t)).open(t)
	text, err := os.ReadFile(filepath.Join(docs, "ui.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path, scheme string
		height             int64
	}{
		{"ui-fleet.png", fleetPath, "light", 640},
		{"ui-fleet-dark.png", fleetPath, "dark", 640},
		{"ui-cluster.png", rolloutPath, "light", 860},
		{"ui-object.png", objectPath, "light", 860},
	} {
		p.scheme(c.scheme)
		p.do("resizing", emulation.SetDeviceMetricsOverride(1280, c.height, 1, false))
		p.visit(c.path)
		p.until("the page is live", `document.getElementById("live").dataset.state === "on"`)
		var taken []byte
		p.do("taking a picture", chromedp.CaptureScreenshot(&taken))
		small, err := shrink(taken)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(docs, c.name)
		if *update {
			if err := os.WriteFile(file, small, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatalf("%v: take the pictures with \"make test-browser UPDATE=1\"", err)
		}
		if info.Size() > maxPicture || len(small) > maxPicture {
			t.Errorf("%s has %d bytes, and a new picture %d, at most %d", c.name, info.Size(), len(small), maxPicture)
		}
		if !strings.Contains(string(text), "]("+c.name+")") {
			t.Errorf("docs/ui.md does not show %s", c.name)
		}
	}
}

// shrink reduces a picture to the 256 most frequent colours, which for a page of text is not visible.
func shrink(data []byte) ([]byte, error) {
	from, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	count := map[color.RGBA]int{}
	each(from, func(_, _ int, c color.RGBA) { count[c]++ })
	colours := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), bytes.Compare([]byte{a.R, a.G, a.B}, []byte{b.R, b.G, b.B}))
	})
	var palette color.Palette
	for _, c := range colours[:min(len(colours), 256)] {
		palette = append(palette, c)
	}
	index := map[color.RGBA]uint8{}
	for _, c := range colours {
		index[c] = uint8(palette.Index(c))
	}
	to := image.NewPaletted(from.Bounds(), palette)
	each(from, func(x, y int, c color.RGBA) { to.SetColorIndex(x, y, index[c]) })
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	err = encoder.Encode(&out, to)
	return out.Bytes(), err
}

func each(of image.Image, do func(x, y int, c color.RGBA)) {
	b := of.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			do(x, y, color.RGBAModel.Convert(of.At(x, y)).(color.RGBA))
		}
	}
}

func TestShrink(t *testing.T) {
	from := image.NewRGBA(image.Rect(0, 0, 300, 2))
	for x := range 300 {
		from.SetRGBA(x, 0, color.RGBA{R: 200, A: 255})
		from.SetRGBA(x, 1, color.RGBA{R: uint8(x), G: uint8(x / 2), A: 255})
	}
	var data bytes.Buffer
	if err := png.Encode(&data, from); err != nil {
		t.Fatal(err)
	}
	small, err := shrink(data.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	to, err := png.Decode(bytes.NewReader(small))
	if err != nil {
		t.Fatal(err)
	}
	if to.Bounds() != from.Bounds() || to.At(7, 0) != (color.RGBA{R: 200, A: 255}) {
		t.Errorf("the picture has %v and the colour %v", to.Bounds(), to.At(7, 0))
	}
}
