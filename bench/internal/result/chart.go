package result

import (
	"bytes"
	"fmt"
	"html"
)

// Layout of a chart, in the picture's own units.
const (
	rowHeight  = 15
	cellGap    = 14
	labelWidth = 250
	barWidth   = 460
	valueWidth = 130
	headHeight = 44
)

// palette gives each side a colour that colour-blind readers tell apart too.
var palette = []string{"#8c8c8c", "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9"}

// Chart draws one quantity of every cell as horizontal bars, each cell scaled by its own largest
// value: sides are to be compared within a cell, and cells differ by orders of magnitude. The
// thin line at a bar's end spans its rounds.
func (r *Report) Chart(title, unit string, of func(Sample) float64) []byte {
	rows := 0
	for i := range r.Cells {
		rows += len(r.Cells[i].Series)
	}
	width, height := labelWidth+barWidth+valueWidth, headHeight+rows*rowHeight+len(r.Cells)*(rowHeight+cellGap)
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="10" y="22" font-size="15" font-weight="bold">%s</text>`+"\n", html.EscapeString(title))
	y := headHeight
	for i := range r.Cells {
		y = r.drawCell(&b, &r.Cells[i], y, unit, of)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (r *Report) drawCell(b *bytes.Buffer, c *Cell, y int, unit string, of func(Sample) float64) int {
	fmt.Fprintf(b, `<text x="10" y="%d" font-weight="bold">%s</text>`+"\n", y+11, html.EscapeString(c.Name()))
	y += rowHeight
	var largest float64
	for i := range c.Series {
		for _, v := range c.Series[i].sorted(of) {
			largest = max(largest, v)
		}
	}
	if largest == 0 {
		largest = 1 // nothing measured: bars of no length
	}
	for i := range c.Series {
		s := &c.Series[i]
		rounds, median := s.sorted(of), s.Median(of)
		scale := barWidth / largest
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, labelWidth-6, y+11, html.EscapeString(s.Side))
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`, labelWidth, y+2, median*scale, rowHeight-4, r.colour(s.Side))
		if len(rounds) > 1 {
			fmt.Fprintf(b, `<path d="M%.1f %dH%.1f" stroke="black"/>`, labelWidth+rounds[0]*scale, y+rowHeight/2, labelWidth+rounds[len(rounds)-1]*scale)
		}
		fmt.Fprintf(b, `<text x="%.1f" y="%d">%s %s</text>`+"\n", labelWidth+rounds[len(rounds)-1]*scale+6, y+11, short(median), html.EscapeString(unit))
		y += rowHeight
	}
	return y + cellGap
}

func (r *Report) colour(side string) string {
	for i := range r.Sides {
		if r.Sides[i].Name == side {
			return palette[i%len(palette)]
		}
	}
	return palette[0]
}

// short prints a number in at most five characters or so.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.2fM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.0fk", v/1e3)
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
