package streamlab

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"slices"
)

// Layout of a picture, in its own units.
const (
	pictureWidth  = 720
	pictureHeight = 380
	plotLeft      = 70
	plotRight     = 560
	plotTop       = 50
	plotBottom    = 330
)

// colours are told apart by colour-blind readers too.
var colours = map[string]string{"direct": "#8c8c8c", "patched": "#e69f00", "streamproxy": "#0072b2"}

// Picture draws p50 and p95 of a pair's steady rows against the number of streams, both axes
// logarithmic: what is seen of seconds and of milliseconds is the factor between them.
func (r *Report) Picture(pair string) []byte {
	p := &picture{report: r, pair: pair, lowest: math.Inf(1)}
	p.measure()
	fmt.Fprintf(&p.out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n",
		pictureWidth, pictureHeight, pictureWidth, pictureHeight)
	fmt.Fprintf(&p.out, `<rect width="%d" height="%d" fill="white"/>`+"\n", pictureWidth, pictureHeight)
	fmt.Fprintf(&p.out, `<text x="10" y="22" font-size="15" font-weight="bold">Publish to yield, %s (less is better)</text>`+"\n",
		html.EscapeString(Pairs[pair].Name()))
	if len(p.streams) > 0 {
		p.axes()
		for i, side := range Sides {
			p.side(side.Name, i)
		}
	}
	p.out.WriteString("</svg>\n")
	return p.out.Bytes()
}

type picture struct {
	report          *Report
	pair            string
	streams         []int // of the rows that there are, ascending
	lowest, highest float64
	out             bytes.Buffer
}

// measure finds what the axes must cover.
func (p *picture) measure() {
	for i := range p.report.Rows {
		row := &p.report.Rows[i]
		if row.Pair != p.pair || row.Arrivals != Steady {
			continue
		}
		if !slices.Contains(p.streams, row.Streams) {
			p.streams = append(p.streams, row.Streams)
		}
		p.lowest, p.highest = min(p.lowest, row.P(0.5)), max(p.highest, row.P(0.95))
	}
	slices.Sort(p.streams)
	p.lowest = math.Pow(10, math.Floor(math.Log10(max(p.lowest, 1))))
	p.highest = math.Pow(10, math.Ceil(math.Log10(max(p.highest, 10*p.lowest))))
}

func (p *picture) x(streams int) float64 {
	first, last := float64(p.streams[0]), float64(p.streams[len(p.streams)-1])
	if first == last {
		return plotLeft
	}
	return plotLeft + (plotRight-plotLeft)*math.Log(float64(streams)/first)/math.Log(last/first)
}

func (p *picture) y(ms float64) float64 {
	return plotBottom - (plotBottom-plotTop)*math.Log(max(ms, p.lowest)/p.lowest)/math.Log(p.highest/p.lowest)
}

func (p *picture) axes() {
	for ms := p.lowest; ms <= p.highest*1.01; ms *= 10 {
		fmt.Fprintf(&p.out, `<path d="M%d %.1fH%d" stroke="#dddddd"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			plotLeft, p.y(ms), plotRight, plotLeft-6, p.y(ms)+4, span(ms))
	}
	for _, n := range p.streams {
		fmt.Fprintf(&p.out, `<path d="M%.1f %dV%d" stroke="#dddddd"/><text x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n",
			p.x(n), plotTop, plotBottom, p.x(n), plotBottom+16, n)
	}
	fmt.Fprintf(&p.out, `<text x="%d" y="%d" text-anchor="middle">streams</text>`+"\n", (plotLeft+plotRight)/2, plotBottom+34)
}

// side draws one side's two lines, the p95 dashed, and says so beside the plot.
func (p *picture) side(name string, position int) {
	for i, q := range []float64{0.5, 0.95} {
		var path bytes.Buffer
		pen := "M"
		for _, n := range p.streams {
			row := p.report.Find(p.pair, name, n, Steady)
			if row == nil {
				continue
			}
			fmt.Fprintf(&path, "%s%.1f %.1f", pen, p.x(n), p.y(row.P(q)))
			pen = "L"
		}
		if path.Len() == 0 {
			continue
		}
		dashes, y := "", plotTop+20+40*position+16*i
		if i == 1 {
			dashes = ` stroke-dasharray="6 4"`
		}
		fmt.Fprintf(&p.out, `<path d="%s" fill="none" stroke="%s" stroke-width="2"%s/>`, path.String(), colours[name], dashes)
		fmt.Fprintf(&p.out, `<path d="M%d %dh26" stroke="%s" stroke-width="2"%s/><text x="%d" y="%d">%s p%.0f</text>`+"\n",
			plotRight+14, y, colours[name], dashes, plotRight+46, y+4, html.EscapeString(name), 100*q)
	}
}

// span prints milliseconds on the axis.
func span(ms float64) string {
	if ms >= 1000 {
		return fmt.Sprintf("%.0f s", ms/1000)
	}
	return fmt.Sprintf("%.0f ms", ms)
}
