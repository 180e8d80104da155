from geoind.pictures.card import card


def test_a_card_escapes_what_it_is_given() -> None:
    assert (
        card("<b>", {"<i>": "&"})
        == "<div><b>&lt;b&gt;</b><table><tr><td>&lt;i&gt;</td><td>&amp;</td></tr></table></div>"
    )


def test_a_picture_stands_beside_the_facts() -> None:
    page = card("Prior", {"sites": 2}, b"PNG")
    assert 'src="data:image/png;base64,UE5H"' in page
    assert page.endswith("</table></div></div>")
