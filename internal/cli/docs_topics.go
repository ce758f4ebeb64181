package cli

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	pages "github.com/slipwayhq/slipway/docs"
	"github.com/slipwayhq/slipway/internal/fault"
)

// topic is a page of the documentation, or a manifest that a page refers to. Scripts depend on the JSON names.
type topic struct {
	// Name is the argument of the command: the file name without the extension .md.
	Name  string `json:"name"`
	Title string `json:"title"`
	// Text is the content of the file; empty in lists.
	Text string `json:"text,omitempty"`
}

// isPage reports whether the topic is a Markdown page.
func (t topic) isPage() bool { return path.Ext(t.Name) == "" }

// topics returns all topics without their texts, sorted by name. The docs command lists them, and completes its
// argument with their names.
func topics() ([]topic, error) {
	files, err := fs.Glob(pages.Files, "*.*")
	if err != nil {
		return nil, fmt.Errorf("listing the embedded pages: %w", err)
	}
	var out []topic
	for _, file := range files {
		t, err := readTopic(file)
		if err != nil {
			return nil, err
		}
		t.Text = ""
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b topic) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func readTopic(file string) (topic, error) {
	text, err := fs.ReadFile(pages.Files, file)
	if err != nil {
		return topic{}, fmt.Errorf("reading an embedded page: %w", err)
	}
	t := topic{Name: strings.TrimSuffix(file, ".md"), Text: string(text)}
	first, _, _ := strings.Cut(t.Text, "\n")
	t.Title = strings.TrimSpace(strings.TrimLeft(first, "# "))
	if !t.isPage() {
		t.Title, _, _ = strings.Cut(t.Title, ": ")
	}
	return t, nil
}

// find returns the topic, or the section of a topic, that an argument selects. It accepts the path of a page in the
// repository as well. The docs command calls it with its argument.
func find(argument string) (topic, error) {
	name, section, _ := strings.Cut(argument, "#")
	name = strings.TrimSuffix(strings.TrimPrefix(strings.ToLower(name), "docs/"), ".md")
	all, err := topics()
	if err != nil {
		return topic{}, err
	}
	n := slices.IndexFunc(all, func(t topic) bool { return t.Name == name })
	if n < 0 {
		return topic{}, fault.New(fault.Gone, "NoTopic", "there is no topic %q%s; `slipway docs` lists all topics", name, suggestion(name, all))
	}
	file := all[n].Name
	if all[n].isPage() {
		file += ".md"
	}
	t, err := readTopic(file)
	if err != nil || section == "" {
		return t, err
	}
	text, known := sectionOf(t.Text, section)
	if text == "" {
		return topic{}, fault.New(fault.Gone, "NoSection", "topic %s has no section %q; it has: %s", name, section, strings.Join(known, ", "))
	}
	t.Text = text
	return t, nil
}

// suggestion names the topics whose names share a word with the given name.
func suggestion(name string, all []topic) string {
	var near []string
	for _, t := range all {
		for _, word := range strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == ' ' || r == '/' }) {
			if len(word) > 2 && strings.Contains(t.Name, strings.TrimSuffix(word, "s")) && !slices.Contains(near, t.Name) {
				near = append(near, t.Name)
			}
		}
	}
	if len(near) == 0 {
		return ""
	}
	return "; similar: " + strings.Join(near, ", ")
}

var notInSlug = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// slugOf returns the name of a section in links, as code hosts derive it from the heading.
func slugOf(heading string) string {
	return strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), ""), " ", "-")
}

// sectionOf returns the section of a page with the given slug, including its subsections, and the slugs of all
// sections.
func sectionOf(page, slug string) (text string, known []string) {
	var out []string
	level, fenced := 0, false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if depth, heading := headingOf(line); depth > 0 && !fenced {
			known = append(known, slugOf(heading))
			switch {
			case level == 0 && slugOf(heading) == slug:
				level = depth
			case level > 0 && depth <= level:
				level = -1
			}
		}
		if level > 0 {
			out = append(out, line)
		}
	}
	return strings.Join(out, ""), known
}

// headingOf returns the level and the text of a heading; level 0: the line is none. parse uses it, too, so that both
// find the same headings.
func headingOf(line string) (level int, text string) {
	text = strings.TrimLeft(line, "#")
	level = len(line) - len(text)
	if level == 0 || level > 6 || !strings.HasPrefix(text, " ") {
		return 0, ""
	}
	return level, strings.TrimSpace(text)
}
