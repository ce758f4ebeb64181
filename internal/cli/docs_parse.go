package cli

import (
	"regexp"
	"strings"
)

type blockKind int

const (
	paragraph blockKind = iota
	heading
	code
	item
	table
)

// block is a part of a Markdown page that `slipway docs` prints. [parse] creates it, and [style.block] formats it.
type block struct {
	kind blockKind
	// level is the level of a heading.
	level int
	// indent is the indentation of a paragraph, an item or code inside a list.
	indent int
	// marker is the marker of an item, such as "-" or "2.".
	marker string
	// lines are the lines of a paragraph, an item or code, the text of a heading, or the rows of a table.
	lines []string
	// follows reports whether the block follows the previous one without an empty line.
	follows bool
}

var (
	itemForm      = regexp.MustCompile(`^( *)([-*]|\d{1,3}\.) +(\S.*)$`)
	separatorForm = regexp.MustCompile(`^ *\|?[ :|-]*-[ :|-]*$`)
)

// parser collects the blocks of a page.
type parser struct {
	blocks []block
	blank  bool
	// fence is the code block that is being read; nil: none.
	fence *block
}

// parse splits a page into blocks. [render] calls it. It supports only the Markdown that the pages use;
// TestPagesAreRendered renders all of them.
func parse(page string) []block {
	p := &parser{blank: true}
	for line := range strings.Lines(page) {
		p.add(strings.TrimRight(line, " \n"))
	}
	p.endFence()
	return p.blocks
}

func (p *parser) add(line string) {
	text := strings.TrimLeft(line, " ")
	indent := len(line) - len(text)
	switch level, title := headingOf(line); {
	case p.fence != nil:
		p.addCode(line, text)
	case strings.HasPrefix(text, "```"):
		p.fence = &block{kind: code, indent: indent, follows: !p.blank}
	case text == "":
		p.blank = true
		return
	case level > 0:
		p.push(block{kind: heading, level: level, lines: []string{title}})
	case itemForm.MatchString(line):
		m := itemForm.FindStringSubmatch(line)
		p.push(block{kind: item, indent: len(m[1]), marker: m[2], lines: []string{m[3]}})
	case strings.HasPrefix(text, "|"):
		p.addRow(text)
	default:
		p.addText(indent, text)
	}
	p.blank = false
}

func (p *parser) push(b block) {
	b.follows = !p.blank
	p.blocks = append(p.blocks, b)
}

// last returns the last block. Without one it returns a heading, to which no line is added.
func (p *parser) last() *block {
	if len(p.blocks) == 0 {
		return &block{kind: heading}
	}
	return &p.blocks[len(p.blocks)-1]
}

// addCode adds a line to the open code block, or closes it.
func (p *parser) addCode(line, text string) {
	if strings.HasPrefix(text, "```") {
		p.endFence()
		return
	}
	for n := 0; n < p.fence.indent && strings.HasPrefix(line, " "); n++ {
		line = line[1:]
	}
	p.fence.lines = append(p.fence.lines, line)
}

func (p *parser) endFence() {
	if p.fence != nil {
		p.blocks = append(p.blocks, *p.fence)
		p.fence = nil
	}
}

func (p *parser) addRow(text string) {
	if last := p.last(); last.kind == table && !p.blank {
		if !separatorForm.MatchString(text) {
			last.lines = append(last.lines, text)
		}
		return
	}
	p.push(block{kind: table, lines: []string{text}})
}

// addText adds a line to the open paragraph or item, or begins a paragraph. Outside lists, an indented block is code.
func (p *parser) addText(indent int, text string) {
	last := p.last()
	switch {
	case last.kind == code && indent >= codeIndent && last.indent == 0 && len(p.blocks) > 0 && last.marker == indentedCode:
		if p.blank {
			last.lines = append(last.lines, "")
		}
		last.lines = append(last.lines, strings.Repeat(" ", indent-codeIndent)+text)
	case p.blank && indent >= codeIndent && !p.inList():
		p.push(block{kind: code, marker: indentedCode, lines: []string{strings.Repeat(" ", indent-codeIndent) + text}})
	case !p.blank && (last.kind == paragraph || last.kind == item):
		last.lines = append(last.lines, text)
	default:
		p.push(block{kind: paragraph, indent: indent, lines: []string{text}})
	}
}

const (
	// codeIndent is the indentation of code without a fence.
	codeIndent = 4
	// indentedCode marks code without a fence.
	indentedCode = "indented"
)

// inList reports whether the text belongs to an item: an item precedes it, with only indented blocks between them.
func (p *parser) inList() bool {
	for n := len(p.blocks) - 1; n >= 0; n-- {
		switch b := p.blocks[n]; {
		case b.kind == item:
			return true
		case b.indent == 0:
			return false
		}
	}
	return false
}

// cells splits a row of a table. A pipe after a backslash is text. [style.table] calls it.
func cells(row string) []string {
	const pipe = "\x00"
	row = strings.TrimSuffix(strings.TrimPrefix(strings.ReplaceAll(row, `\|`, pipe), "|"), "|")
	var out []string
	for cell := range strings.SplitSeq(row, "|") {
		out = append(out, strings.ReplaceAll(strings.TrimSpace(cell), pipe, "|"))
	}
	return out
}
