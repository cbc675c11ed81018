"""A few sentences in eleven languages and nine scripts, enough to train a tiny tokenizer."""

from __future__ import annotations

import random

SENTENCES = {
    "en": "The old fisherman mends his nets. Rain fell all night on the quiet harbour. "
    "Nobody knew where the letter came from. She sells fresh bread at the market.",
    "de": "Der alte Fischer flickt seine Netze. Die ganze Nacht fiel Regen auf den Hafen. "
    "Niemand wusste, woher der Brief kam. Größere Brötchen kosten fünf Groschen.",
    "ru": "Старый рыбак чинит свои сети. Всю ночь над гаванью шёл дождь. "
    "Никто не знал, откуда пришло письмо. Она продаёт свежий хлеб на рынке.",
    "el": "Ο γέρος ψαράς μπαλώνει τα δίχτυα του. Όλη νύχτα έβρεχε στο λιμάνι. "
    "Κανείς δεν ήξερε από πού ήρθε το γράμμα.",
    "ar": "الصياد العجوز يصلح شباكه. هطل المطر طوال الليل على الميناء. "
    "لا أحد يعرف من أين جاءت الرسالة.",
    "he": "הדייג הזקן מתקן את רשתותיו. כל הלילה ירד גשם על הנמל. איש לא ידע מאין בא המכתב.",
    "hi": "बूढ़ा मछुआरा अपने जाल ठीक करता है। सारी रात बंदरगाह पर बारिश होती रही। "
    "चिट्ठी कहाँ से आई किसी को पता नहीं।",
    "zh": "老渔夫在修补他的渔网。雨整夜落在安静的港口。"
    "没有人知道信是从哪里来的。她在市场上卖新鲜的面包。",
    "ja": "年老いた漁師が網を直している。一晩中、静かな港に雨が降った。"
    "手紙がどこから来たのか誰も知らない。",
    "th": "ชาวประมงชราซ่อมแหของเขา ฝนตกทั้งคืนที่ท่าเรือ ไม่มีใครรู้ว่าจดหมายมาจากไหน",
    "sw": "Mvuvi mzee anashona nyavu zake. Mvua ilinyesha usiku kucha bandarini. "
    "Hakuna aliyejua barua ilitoka wapi. Anauza mkate mpya sokoni.",
}


def lines(language: str, number: int, seed: int = 0) -> list[str]:
    """Different lines: the words (for scripts without spaces, the characters) in another order."""
    rng = random.Random(f"{language} {seed}")
    text = SENTENCES[language]
    spaced = language not in {"zh", "ja", "th"}
    units = text.split() if spaced else list(text.replace(" ", ""))
    drawn = (rng.choices(units, k=rng.randint(4, 14)) for _ in range(number))
    return [f"{(' ' if spaced else '').join(chosen)} {index}" for index, chosen in enumerate(drawn)]
