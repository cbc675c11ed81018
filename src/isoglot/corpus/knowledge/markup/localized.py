"""Localized names of wikis that dump headers lack.

A header lists one name of each namespace; links also use its English and older names. Headers lack
the prefixes of other wikis and the words for redirects and disambiguation pages.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


WIKIPEDIAS = _words("""
aa ab ace ady af ak als alt am ami an ang ann anp ar arc ary arz as ast atj av avk awa ay az azb ba
ban bar bat-smg bbc bcl bdr be be-tarask be-x-old bew bg bh bi bjn blk bm bn bo bpy br bs btm bug
bxr ca cbk-zam cdo ce ceb ch cho chr chy ckb co cr crh cs csb cu cv cy da dag de dga din diq dsb dtp
dty dv dz ee el eml en eo es et eu ext fa fat ff fi fiu-vro fj fo fon fr frp frr fur fy ga gag gan
gcr gd gl glk gn gom gor got gpe gsw gu guc gur guw gv ha hak haw he hi hif ho hr hsb ht hu hy hyw
hz ia iba id ie ig igl ii ik ilo inh io is it iu ja jam jbo jv ka kaa kab kbd kbp kcg kg kge ki kj
kk kl km kn knc ko koi kr krc ks ksh ku kus kv kw ky la lad lb lbe lez lfn lg li lij lld lmo ln lo
lrc lt ltg lv lzh mad mai map-bms mdf mg mh mhr mi min mk ml mn mni mnw mo mr mrj ms mt mus mwl my
myv mzn na nah nan nap nds nds-nl ne new ng nia nl nn no nb nov nqo nr nrm nso nv ny oc olo om or os
pa pag pam pap pcd pcm pdc pfl pi pih pl pms pnb pnt ps pt pwn qu rm rmy rn ro roa-rup roa-tara rsk
ru rue rup rw sa sah sat sc scn sco sd se sg sgs sh shi shn si simple sk skr sl sm smn sn so sq sr
srn ss st stq su sv sw syl szl szy ta tay tcy tdd te tet tg th ti tig tk tl tly tn to tpi tr trv ts
tt tum tw ty tyv udm ug uk ur uz ve vec vep vi vls vo vro wa war wo wuu xal xh xmf yi yo yue za zea
zgh zh zh-classical zh-min-nan zh-yue zu
""")
"""The language codes of Wikipedias, which are also the prefixes of links between them."""

PROJECTS = _words("""
w wikt wiktionary s wikisource b wikibooks q wikiquote n wikinews v wikiversity voy wikivoyage c
commons d wikidata m meta mw mediawikiwiki species wikispecies foundation wmf incubator phab
phabricator bugzilla toollabs toolforge doi imdb arxiv google googlebooks wikipedia
""")
"""Prefixes of links to other projects."""

NAMESPACES = _words("""
special talk user user_talk project project_talk wp mediawiki mediawiki_talk template template_talk
help help_talk category_talk file_talk module
""")
"""Names of other namespaces that every wiki understands."""

FILES = _words("""
file image media datei bild fichier archivo imagen immagine ficheiro arquivo imagem bestand
afbeelding fișier fişier imagine файл изображение зображення картинка slika датотека слика soubor
obrázok plik grafika grafik fájl kép tiedosto kuva fil billede dosya resim tập_tin hình
ملف صورة فائل تصویر پرونده קובץ תמונה 파일 그림 ファイル 画像 文件 檔案 档案 图像 圖像
ไฟล์ ภาพ चित्र अवतार तस्वीर चित्रम् चित्रा picha faili αρχείο εικόνα attēls vaizdas pilt fail
berkas gambar চিত্র ছবি படிமம் պատկեր ფაილი სურათი fitxer imatge fitxategi irudi dosiero
""")
"""Names of the file namespace, with underscores, in lower case."""

CATEGORIES = _words("""
category kategorie catégorie categoría categoria categorie категория категорія kategori kategoria
kategória kategorija категорија kategorio kategoriija luokka thể_loại تصنيف زمرہ رده קטגוריה 분류
カテゴリ 分类 分類 หมวดหมู่ श्रेणी वर्ग jamii κατηγορία kategorija kategooria বিষয়শ্রেণী பகுப்பு
կատեգորիա კატეგორია
""")
"""Names of the category namespace, with underscores, in lower case."""

REDIRECTS = _words("""
redirect redirection redirección redireccion weiterleitung rinvia rinvio redirecionamento
doorverwijzing redirecteaza redirectează перенаправление перенапр перенаправлення виж пренасочване
přesměruj presmeruj patrz przekieruj átirányítás ohjaus uudelleenohjaus omdirigering omdiriger
yönlendirme yönlendi̇rme yönlendir đổi تحويل رجوع_مکرر تغییرمسیر تغییر_مسیر הפניה 넘겨주기 転送
リダイレクト 重定向 เปลี่ยนทาง अनुप्रेषित पुनर्निर्देशन elekeza ανακατευθυνση ανακατεύθυνση
alih পুনর্নির্দেশ வழிமாற்று
""")
"""The words that make a page a redirect, with underscores, in lower case."""

DISAMBIGUATIONS = {
    "": "disambig disambiguation dab disamb hndis geodis disambiguation_cleanup",
    "ar": "توضيح صفحة_توضيح",
    "bg": "пояснение",
    "bn": "দ্ব্যর্থতা_নিরসন",
    "cs": "rozcestník",
    "de": "begriffsklärung bks",
    "el": "αποσαφήνιση",
    "es": "desambiguación desambiguacion desambig",
    "fa": "ابهام‌زدایی",
    "fi": "täsmennyssivu täsmennys",
    "fr": "homonymie désambiguïsation paronymie patronymie toponymie",
    "he": "פירושונים",
    "hi": "बहुविकल्पी_शब्द बहुविकल्पी",
    "hu": "egyért egyértelműsítő",
    "id": "disambiguasi",
    "it": "disambigua",
    "ja": "aimai 曖昧さ回避 人名の曖昧さ回避 地名の曖昧さ回避",
    "ko": "동음이의 동명이인",
    "nl": "dp doorverwijspagina",
    "pl": "ujednoznacznienie",
    "pt": "desambiguação desambig",
    "ro": "dezambiguizare",
    "ru": "неоднозначность",
    "sv": "förgrening flertydig",
    "sw": "maana",
    "th": "แก้กำกวม แก้ความกำกวม",
    "tr": "anlam_ayrımı anlamayrımı",
    "uk": "багатозначність",
    "ur": "ضد_ابہام",
    "vi": "định_hướng trang_định_hướng",
    "zh": "消歧义 消歧義 消歧义页",
}
"""Language (none: all) -> templates of disambiguation pages, with underscores, in lower case."""

DISAMBIGUATED = _words("""
disambiguation begriffsklärung homonymie desambiguación desambiguação disambigua doorverwijspagina
dezambiguizare значения пояснение значення rozcestník ujednoznacznienie egyértelműsítő täsmennyssivu
olika_betydelser anlam_ayrımı định_hướng توضيح ضد_ابہام ابهام‌زدایی פירושונים 동음이의 曖昧さ回避
消歧义 消歧義 แก้ความกำกวม बहुविकल्पी αποσαφήνιση maana disambiguasi
""")
"""Bracketed suffixes of titles of disambiguation pages, with underscores."""
