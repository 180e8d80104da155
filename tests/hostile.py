"""Text from outside that must stay text: in templates, HTML, scripts and file names."""

HOSTILE = [
    "{{7*7}}",
    "{{ cycler.__init__.__globals__.os.mkdir(dict(PWNED=1)|join) }}",
    "{% for x in y %}",
    "{# nothing",
    "{{ '{' }}{%raw%}{{{",
    "<img src=x onerror='window.pwned=1'>",
    "</script><script>window.pwned=1</script>",
    "</title></style><script>window.pwned=1</script><!--",
    "\"'`><b onclick=alert(1)>",
    "${window.pwned=1}",
    "`+(window.pwned=1)+`\\",
    "javascript:window.pwned=1",
    "%s %(x)s {0} {x}",
    "$\\frac{$",
    "a\u2028b\u2029c\x85",
    "\u202egpj.exe\u2066\u200f",
    "a\x00b",
    "\udcff",
]
"""Each is tried wherever data reaches a page; the one that is a Python expression makes a folder if it runs."""

FILE_NAMES = [text.replace("/", "\u2215") for text in HOSTILE if "\x00" not in text]
"""The same as names of files."""
